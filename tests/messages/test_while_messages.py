"""The messages for `ol.while_loop`: the whole text, of which line 1 is the first of `model.py`."""


def test_python_that_branches_on_a_variable(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            y = s if b else -s
        """,
        """
        oarlock.ArgumentError: "b" has no value while the program is being built, so Python cannot branch on it
          model.py:5      y = s if b else -s
              "b"   bool[]   fed; declared at model.py:4
          Try: use ol.cond to branch on one bool, ol.ifelse to branch per row, ol.while_loop to repeat    (oarlock explain ArgumentError)
        """,
    )


def test_no_trips_at_all(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ol.while_loop(b, max_trips=0)
        """,
        """
        oarlock.ArgumentError: while_loop: max_trips must be a positive number of iterations, not 0
          model.py:4      ol.while_loop(b, max_trips=0)
        """,
    )


def test_a_loop_whose_condition_is_of_rows(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            c = ol.layer.data("c", shape=[], dtype="bool")
            ol.while_loop(c)
        """,
        """
        oarlock.ShapeError: while_loop: the condition must be one bool, bool[], not bool[n]
          model.py:4      ol.while_loop(c)
              "c"   bool[n]   fed; declared at model.py:3
          Try: use ol.ifelse() for one condition per row    (oarlock explain ShapeError)
        """,
    )


def test_a_condition_that_is_never_updated(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
            loop()
        """,
        """
        oarlock.ProgramError: while_loop: its condition is never updated, so it would never end
          model.py:8      loop()
          Try: call loop.update_condition(condition) in the body    (oarlock explain ProgramError)
        """,
    )


def test_nothing_that_is_carried(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.update_condition(s < s + s)
            loop()
        """,
        """
        oarlock.ProgramError: while_loop: nothing is carried, so every iteration would be the same
          model.py:8      loop()
          Try: call loop.carry(var, value) in the body    (oarlock explain ProgramError)
        """,
    )


def test_a_condition_that_stays_what_it_was(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
                loop.update_condition(b)
        """,
        """
        oarlock.ProgramError: while_loop.update_condition: "b" is not computed in the body, so the loop would never end
          model.py:8      loop.update_condition(b)
              "b"   bool[]   fed; declared at model.py:4
          Try: compute it from values of the iteration    (oarlock explain ProgramError)
        """,
    )


def test_a_condition_that_nothing_changes(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
                loop.update_condition(ol.op.reduce_sum(x) < 3.0)
            loop()
        """,
        """
        oarlock.ProgramError: while_loop: its condition "less_0" does not depend on a carried variable, so it would never change
          model.py:10      loop()
              "less_0"   bool[]   from less at model.py:9
          Try: compute it from a carried variable or its next value    (oarlock explain ProgramError)
        """,
    )


def test_a_condition_that_is_updated_twice(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.update_condition(s < 2.0)
                loop.update_condition(s < 3.0)
        """,
        """
        oarlock.ProgramError: while_loop.update_condition: the condition is already updated
          model.py:8      loop.update_condition(s < 3.0)
              "less_0"   bool[]   from less at model.py:7
        """,
    )


def test_a_value_that_is_carried_twice(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
                loop.carry(s, s)
        """,
        """
        oarlock.ProgramError: while_loop.carry: "s" is already carried
          model.py:8      loop.carry(s, s)
              "add_0"   float32[]   from add at model.py:7
        """,
    )


def test_a_value_that_becomes_another_type(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, x)
        """,
        """
        oarlock.ShapeError: while_loop.carry: "s" starts as float32[] but continues as float32[n, 2]
          model.py:8      loop.carry(s, x)
              "s"   float32[]   fed; declared at model.py:3
              "x"   float32[n, 2]   fed; declared at model.py:4
        """,
    )


def test_a_value_of_the_body_that_is_carried(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                h = ol.op.tanh(s)
                loop.carry(h, s)
        """,
        """
        oarlock.ProgramError: while_loop.carry: "tanh_0" has a value inside the body only, but the loop needs it before its first iteration
          model.py:8      loop.carry(h, s)
              "tanh_0"   float32[]   from tanh at model.py:7
          Try: carry an outer variable, which holds the initial value    (oarlock explain ProgramError)
        """,
    )


def test_rows_that_are_more_and_fewer_from_trip_to_trip(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                some = ol.op.nonzero(ol.op.reduce_sum(x, axis=1) > 0.0)
                loop.output(ol.op.gather(x, some))
        """,
        """
        oarlock.ShapeError: while_loop.output: "gather_0" has size_0 rows, which differ between iterations, so they cannot be stacked
          model.py:8      loop.output(ol.op.gather(x, some))
              "gather_0"   float32[size_0, 2]   from gather at model.py:8
          Try: return a value of constant size: a sum, a mean, or the rows merged in their order    (oarlock explain ShapeError)
        """,
    )


def test_carrying_outside_the_body(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            loop.carry(s, s + s)
        """,
        """
        oarlock.ProgramError: while_loop.carry: call it inside `with loop.block():`
          model.py:6      loop.carry(s, s + s)
        """,
    )


def test_a_second_body(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
            with loop.block():
                loop.carry(s, s + s)
        """,
        """
        oarlock.ProgramError: while_loop: it already has a body
          model.py:8      with loop.block():
        """,
    )


def test_a_loop_without_a_body(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ol.while_loop(b)()
        """,
        """
        oarlock.ProgramError: while_loop: close it once, after its body
          model.py:4      ol.while_loop(b)()
        """,
    )


def test_a_loop_that_is_never_closed(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            loop = ol.while_loop(b)
            with loop.block():
                loop.carry(s, s + s)
            y = s + s
            ol.eval(y, {"s": 1.0, "b": True})
        """,
        """
        oarlock.VerifyError: block 1 (while_0.body) belongs to no op
          model.py:7      loop.carry(s, s + s)
          Try: if you built it, call its owner: `y = ie(condition)`, `states = rnn()`    (oarlock explain VerifyError)
        """,
    )


def test_more_trips_than_are_allowed(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            loop = ol.while_loop(s < 10.0, max_trips=3)
            with loop.block():
                loop.carry(s, s + s)
                loop.update_condition(s + s < 10.0)
            ol.eval(loop(), {"s": 1.0})
        """,
        """
        oarlock.KernelError: while: the condition is still true after max_trips=3 iterations
          model.py:8      ol.eval(loop(), {"s": 1.0})
          running   main, op 2 of 3, scope main/while_0/3
              condition = "less_0" bool[]
              initial   = "s" float32[], values 1 to 1
          Try: no state was changed; fix the inputs and run the step again    (oarlock explain KernelError)
        """,
    )
