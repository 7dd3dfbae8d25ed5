"""The constructs that own blocks: `rnn`, `while_loop`, `switch`, `ifelse`."""
