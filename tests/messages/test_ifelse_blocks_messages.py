"""The messages for blocks of `ol.ifelse` written in another way: the whole text, of which line 1 is the first of `model.py`."""

import pytest


@pytest.mark.mission("B12")
def test_a_second_true_block(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            with ie.true_block():
                ie.output(x)
        """,
        """
        oarlock.ProgramError: ifelse: it has a true block already
          model.py:7      with ie.true_block():
        """,
    )


def test_a_block_in_the_other_block(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                with ie.false_block():
                    ie.output(x)
        """,
        """
        oarlock.ProgramError: ifelse: its other block is open
          model.py:6      with ie.false_block():
        """,
    )


def test_an_output_outside_the_blocks(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            ie.output(x)
        """,
        """
        oarlock.ProgramError: ifelse.output: call it inside `with ie.true_block():` or `with ie.false_block():`
          model.py:5      ie.output(x)
        """,
    )


def test_the_rows_of_a_number(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            ie = ol.ifelse()
            with ie.true_block():
                ie.input(s)
        """,
        """
        oarlock.ShapeError: ifelse.input: "s" has no rows
          model.py:6      ie.input(s)
              "s"   float32[]   fed; declared at model.py:3
        """,
    )


@pytest.mark.mission("B12")
def test_a_block_that_is_missing(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            ie(c)
        """,
        """
        oarlock.ProgramError: ifelse: it has no false block
          model.py:8      ie(c)
          Try: write it in `with ie.false_block():`    (oarlock explain ProgramError)
        """,
    )


@pytest.mark.mission("B15")
def test_blocks_that_return_different_numbers_of_values(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x, x)
            with ie.false_block():
                ie.output(x)
            ie(c)
        """,
        """
        oarlock.ProgramError: ifelse: the true block returns 2 values, the false block 1
          model.py:10      ie(c)
          both blocks return the same number of values, at least one
          Try: ie.output(...) in each block    (oarlock explain ProgramError)
        """,
    )


@pytest.mark.mission("B15")
def test_blocks_that_hand_nothing_out(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ol.op.tanh(x)
            with ie.false_block():
                ol.op.tanh(x)
            ie(c)
        """,
        """
        oarlock.ProgramError: ifelse: the true block returns no values, the false block none
          model.py:10      ie(c)
          both blocks return the same number of values, at least one
          Try: ie.output(...) in each block    (oarlock explain ProgramError)
        """,
    )


def test_a_condition_that_is_one_bool(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            with ie.false_block():
                ie.output(-x)
            ie(b)
        """,
        """
        oarlock.ShapeError: ifelse: the condition must be one bool per row, bool[n] or bool[n, 1], not bool[]
          model.py:10      ie(b)
              "b"   bool[]   fed; declared at model.py:4
          Try: use ol.cond(condition, ...) for one bool    (oarlock explain ShapeError)
        """,
    )


def test_a_condition_that_is_no_variable(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            with ie.false_block():
                ie.output(-x)
            ie(True)
        """,
        """
        oarlock.ArgumentError: ifelse: the condition must be a variable of a program, not bool True
          model.py:9      ie(True)
          Try: this is probably x == y of plain Python values: compare a variable, as in label == 0, or use Python's `if`    (oarlock explain ArgumentError)
        """,  # noqa: E501
    )


@pytest.mark.mission("B15")
def test_an_ifelse_that_is_closed_twice(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            with ie.false_block():
                ie.output(-x)
            ie(c)
            ie(c)
        """,
        """
        oarlock.ProgramError: ifelse: close it once, after its blocks
          model.py:11      ie(c)
        """,
    )


def test_an_ifelse_that_is_closed_in_another_block(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x)
            with ie.false_block():
                ie.output(-x)
            ol.cond(b, lambda: ie(c), lambda: x)
        """,
        """
        oarlock.ProgramError: ifelse: it was opened in main, so it cannot be closed in main/cond_0.true
          model.py:11 in <lambda>      ol.cond(b, lambda: ie(c), lambda: x)
          Try: call it in the block in which it was opened    (oarlock explain ProgramError)
        """,
    )


def test_an_ifelse_that_is_never_closed(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.op.tanh(x))
            y = x + x
            ol.eval(y, {"x": [[1.0, 2.0]]})
        """,
        """
        oarlock.VerifyError: block 1 (if_else_0.true) belongs to no op
          model.py:6      ie.output(ol.op.tanh(x))
          Try: if you built it, call its owner: `y = ie(condition)`, `states = rnn()`    (oarlock explain VerifyError)
        """,
    )
