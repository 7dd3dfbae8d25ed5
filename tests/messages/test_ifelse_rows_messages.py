"""The messages for rows that do not fit an `ol.ifelse`: the whole text, of which line 1 is the first of `model.py`."""

import pytest


def test_rows_of_a_square(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            m = ol.layer.data("m", shape=["n"])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.op.reduce_sum(m, axis=1))
            with ie.false_block():
                ie.output(ol.op.reduce_sum(m, axis=0))
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse: "m" has the size n of the condition in more than one dimension, so its rows are ambiguous
          model.py:10      ie(c)
              "m"   float32[n, n]   fed; declared at model.py:3
          Try: use ie.input(x) for its rows or ie.whole(x) for all of x, or rename the other size    (oarlock explain ShapeError)
        """,
    )


@pytest.mark.mission("B15")
def test_rows_of_different_dtypes(require):
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
                ie.output(ol.op.cast(x, dtype="int64"))
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse: output 0 is float32[n.true, 2] from the true block but int64[n.false, 2] from the false block
          model.py:10      ie(c)
          both blocks return the same types
              "x_0"   float32[n.true, 2]   passed in; declared at model.py:10
              "cast_0"   int64[n.false, 2]   from cast at model.py:9
        """,
    )


@pytest.mark.mission("B15")
def test_rows_of_different_widths(require):
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
                ie.output(ol.op.reduce_sum(x, axis=1))
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse: output 0 is float32[n.true, 2] from the true block but float32[n.false] from the false block
          model.py:10      ie(c)
          both blocks return the same types
              "x_0"   float32[n.true, 2]   passed in; declared at model.py:10
              "reduce_sum_0"   float32[n.false]   from reduce_sum at model.py:9
        """,
    )


def test_one_number_where_there_are_rows(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.op.reduce_sum(x))
            with ie.false_block():
                ie.output(x)
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse: "reduce_sum_0" is returned as float32[], without a row for each of the n.true rows of its block
          model.py:10      ie(c)
          the outputs of a block have its rows
              "reduce_sum_0"   float32[]   from reduce_sum at model.py:7
          Try: keep the rows, for example x * 0.0 + value    (oarlock explain ShapeError)
        """,
    )


def test_rows_that_are_counted_by_a_number_and_not_asked_for(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            k = ol.layer.data("k", shape=[3, 2], batch=None)
            ck = ol.layer.data("ck", shape=[3], dtype="bool", batch=None)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(k)
            with ie.false_block():
                ie.output(ie.input(k))
            ie(ck)
        """,
        """
        oarlock.ShapeError: ifelse: "k" is returned as float32[3, 2], without a row for each of the if_else_0.true_0 rows of its block
          model.py:10      ie(ck)
          the outputs of a block have its rows
              "k"   float32[3, 2]   fed; declared at model.py:3
          Try: if the number of rows is not symbolic, use ie.input(x) inside the block for the rows of x    (oarlock explain ShapeError)
        """,
    )


def test_rows_of_another_number(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            k = ol.layer.data("k", shape=[3, 2], batch=None)
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ie.input(k))
            with ie.false_block():
                ie.output(ie.input(k))
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse.input: "k" has 3 rows, but the condition has n
          model.py:10      ie(c)
              "k"   float32[3, 2]   fed; declared at model.py:3
          Try: declare both with the same number of rows, by the same name or number    (oarlock explain ShapeError)
        """,
    )


def test_rows_and_all_rows_in_one_op(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(x + ie.whole(x))
        """,
        """
        oarlock.ShapeError: add: x [n, 2] and y [if_else_0.n, 2] do not broadcast: n and if_else_0.n are different sizes
          model.py:6      ie.output(x + ie.whole(x))
          add(x: number[*#s], y: number[*#s]) -> z: number[*#s]
              x = "x"   float32[n, 2]   fed; declared at model.py:3
              y = "x_0"   float32[if_else_0.n, 2]   declared at model.py:6
        """,
    )


def test_a_value_of_the_other_block(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                h = ol.op.tanh(x)
                ie.output(h)
            with ie.false_block():
                ie.output(h)
        """,
        """
        oarlock.ProgramError: ifelse.output: "tanh_0" is not visible in main/if_else_0.false; it belongs to main/if_else_0.true
          model.py:9      ie.output(h)
              "tanh_0"   float32[n, 2]   from tanh at model.py:6
          Try: return it from its block as an output    (oarlock explain ProgramError)
        """,
    )


def test_a_number_that_is_returned(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(3.0)
        """,
        """
        oarlock.ArgumentError: ifelse.output: value must be a variable of a program, not float 3.0
          model.py:6      ie.output(3.0)
        """,
    )


def test_elements_of_rows_by_elements(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            w = ol.layer.data("w", shape=[2], ragged=1)
            m = ol.layer.data("m", shape=["n", "w.t"], batch=None)
            c = ol.layer.data("c", shape=[], dtype="bool")
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.layer.sequence_pool(w, "sum") * ol.op.reduce_sum(m))
            with ie.false_block():
                ie.output(ol.layer.sequence_pool(w, "max"))
            ie(c)
        """,
        """
        oarlock.ShapeError: ifelse: "m" has the size w.t outside its first dimension, but a block sees only a part of it
          model.py:11      ie(c)
          a block sees a selection of the first dimension only
              "m"   float32[n, w.t]   fed; declared at model.py:4
          Try: use ie.whole(x) inside the block for all of x, or rename the other size    (oarlock explain ShapeError)
        """,
    )
