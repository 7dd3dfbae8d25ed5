"""Control flow: `rnn`, `while_loop`, `switch`, `cond` and `ifelse`."""
