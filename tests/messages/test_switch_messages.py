"""The messages for `ol.switch`, `ol.cond` and `ol.case`: the whole text, of which line 1 is the first of `model.py`."""


def test_a_switch_without_a_default(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            switch()
        """,
        """
        oarlock.ProgramError: switch: it has no default case, so its result is undefined if no condition holds
          model.py:8      switch()
          Try: write one in `with switch.default():`    (oarlock explain ProgramError)
        """,
    )


def test_a_switch_without_a_case(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            switch = ol.switch()
            with switch.default():
                switch.output(s)
            switch()
        """,
        """
        oarlock.ProgramError: switch: it has no case
          model.py:7      switch()
          Try: write one in `with switch.case(condition):`, before the default    (oarlock explain ProgramError)
        """,
    )


def test_a_case_after_the_default(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(-s)
            with switch.case(b):
                switch.output(s)
        """,
        """
        oarlock.ProgramError: switch: nothing is tested after the default
          model.py:10      with switch.case(b):
          Try: write the default last    (oarlock explain ProgramError)
        """,
    )


def test_a_second_default(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(-s)
            with switch.default():
                switch.output(s)
        """,
        """
        oarlock.ProgramError: switch: nothing is tested after the default
          model.py:10      with switch.default():
          Try: write the default last    (oarlock explain ProgramError)
        """,
    )


def test_a_case_in_a_case(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                with switch.case(b):
                    switch.output(s)
        """,
        """
        oarlock.ProgramError: switch: its block switch_0.case_0 is open
          model.py:7      with switch.case(b):
          Try: write its blocks one after another, not nested    (oarlock explain ProgramError)
        """,
    )


def test_a_case_of_a_closed_switch(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(-s)
            switch()
            with switch.case(b):
                switch.output(s)
        """,
        """
        oarlock.ProgramError: switch: it is closed and accepts no more blocks
          model.py:11      with switch.case(b):
        """,
    )


def test_a_switch_that_is_closed_twice(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(-s)
            switch()
            switch()
        """,
        """
        oarlock.ProgramError: switch: close it once, after its blocks
          model.py:11      switch()
        """,
    )


def test_cases_of_different_types(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(x)
            switch()
        """,
        """
        oarlock.ShapeError: switch: output 0 is float32[] in switch_0.case_0 but float32[n, 2] in switch_0.default
          model.py:11      switch()
          every block returns the same types
              "s"   float32[]   fed; declared at model.py:3
              "x"   float32[n, 2]   fed; declared at model.py:4
        """,
    )


def test_cases_that_return_different_numbers_of_values(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            with switch.default():
                switch.output(s, s)
            switch()
        """,
        """
        oarlock.ProgramError: switch: switch_0.case_0 returns 1 value, switch_0.default 2
          model.py:10      switch()
          every block returns the same number of values
        """,
    )


def test_cases_that_hand_nothing_out(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            switch = ol.switch()
            with switch.case(b):
                pass
            with switch.default():
                pass
            switch()
        """,
        """
        oarlock.ProgramError: switch: its blocks return nothing
          model.py:10      switch()
          Try: switch.output(...) in each block    (oarlock explain ProgramError)
        """,
    )


def test_an_output_outside_the_cases(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            switch = ol.switch()
            switch.output(s)
        """,
        """
        oarlock.ProgramError: switch.output: call it inside one of its blocks
          model.py:5      switch.output(s)
        """,
    )


def test_a_condition_for_each_row(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            c = ol.layer.data("c", shape=[], dtype="bool")
            ol.switch().case(c)
        """,
        """
        oarlock.ShapeError: switch: the condition must be one bool, bool[], not bool[n]
          model.py:4      ol.switch().case(c)
              "c"   bool[n]   fed; declared at model.py:3
          Try: use ol.ifelse() for one condition per row    (oarlock explain ShapeError)
        """,
    )


def test_a_condition_for_each_row_that_a_function_writes(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            c = ol.layer.data("c", shape=[], dtype="bool")
            switch = ol.switch()
            with switch.case(b):
                switch.output(s)
            switch.case(lambda: c)
        """,
        """
        oarlock.ShapeError: switch: the condition must be one bool, bool[], not bool[n]
          model.py:9      switch.case(lambda: c)
              "c"   bool[n]   fed; declared at model.py:5
          Try: use ol.ifelse() for one condition per row    (oarlock explain ShapeError)
        """,
    )


def test_a_condition_that_is_known_already(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ol.cond(True, lambda: x, lambda: -x)
        """,
        """
        oarlock.ArgumentError: cond: the condition must be a variable of a program, not bool True
          model.py:4      ol.cond(True, lambda: x, lambda: -x)
          Try: this is probably x == y of plain Python values: compare a variable, as in label == 0, or use Python's `if`    (oarlock explain ArgumentError)
        """,  # noqa: E501
    )


def test_blocks_that_are_no_functions(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ol.cond(b, x, -x)
        """,
        """
        oarlock.ArgumentError: cond: a block must be a function, not Var float32['n', 2]
          model.py:5      ol.cond(b, x, -x)
          Try: pass lambda: x, or a function without arguments    (oarlock explain ArgumentError)
        """,
    )


def test_a_function_that_returns_nothing(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            def nothing():
                ol.op.tanh(x)
            ol.cond(b, nothing, lambda: x)
        """,
        """
        oarlock.ArgumentError: cond: a function returned None, but its result is the output of its block
          model.py:7      ol.cond(b, nothing, lambda: x)
          Try: return a variable, or several in a tuple    (oarlock explain ArgumentError)
        """,
    )


def test_a_case_that_is_no_pair(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ol.case([b], lambda: x)
        """,
        """
        oarlock.ArgumentError: case: a case must be a pair (condition, function), not Var bool[]
          model.py:5      ol.case([b], lambda: x)
          Try: ol.case([(x < 0.0, lambda: -x)], lambda: x)    (oarlock explain ArgumentError)
        """,
    )


def test_no_cases_at_all(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ol.case([], lambda: x)
        """,
        """
        oarlock.ArgumentError: case: there are no cases
          model.py:4      ol.case([], lambda: x)
        """,
    )


def test_an_index_that_is_no_whole_number(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            ol.switch_case(s, {0: lambda: s}, lambda: -s)
        """,
        """
        oarlock.ShapeError: switch_case: index must be one integer, int64[], not float32[]
          model.py:4      ol.switch_case(s, {0: lambda: s}, lambda: -s)
              "s"   float32[]   fed; declared at model.py:3
        """,
    )


def test_a_key_that_is_no_whole_number(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            i = ol.layer.data("i", shape=[], dtype="int64", batch=None)
            ol.switch_case(i, {"a": lambda: s}, lambda: -s)
        """,
        """
        oarlock.ArgumentError: switch_case: a key must be an integer, not str 'a'
          model.py:5      ol.switch_case(i, {"a": lambda: s}, lambda: -s)
        """,
    )


def test_a_value_that_a_case_has_and_the_program_around_it_has_not(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            kept = []
            ol.cond(b, lambda: kept.append(ol.op.tanh(s)) or kept[0], lambda: s)
            ol.op.square(kept[0])
        """,
        """
        oarlock.UndefinedVarError: square: "tanh_0" is not visible in main; it belongs to main/cond_0.true
          model.py:7      ol.op.square(kept[0])
              "tanh_0"   float32[]   from tanh at model.py:6
          Try: return it from its block as an output    (oarlock explain UndefinedVarError)
        """,
    )


def test_a_function_that_wants_an_argument(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            b = ol.layer.data("b", shape=[], dtype="bool", batch=None)
            ol.cond(b, lambda z: x, lambda: x)
        """,
        """
        oarlock.ArgumentError: cond: a block must be a function without arguments, not one with (z)
          model.py:5      ol.cond(b, lambda z: x, lambda: x)
          Try: pass lambda: x, or a function without arguments    (oarlock explain ArgumentError)
        """,
    )


def test_a_condition_that_wants_an_argument(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            ol.case([(lambda z: z < 0.0, lambda: -s)], lambda: s)
        """,
        """
        oarlock.ArgumentError: case: a condition must be a function without arguments, not one with (z)
          model.py:4      ol.case([(lambda z: z < 0.0, lambda: -s)], lambda: s)
          Try: pass lambda: x, or a function without arguments    (oarlock explain ArgumentError)
        """,
    )


def test_cases_that_are_no_list(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[2])
            ol.case(None, lambda: x)
        """,
        """
        oarlock.ArgumentError: case: the cases must be a list of pairs, not NoneType None
          model.py:4      ol.case(None, lambda: x)
          Try: ol.case([(x < 0.0, lambda: -x)], lambda: x)    (oarlock explain ArgumentError)
        """,
    )


def test_functions_without_keys(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            s = ol.layer.data("s", shape=[], batch=None)
            i = ol.layer.data("i", shape=[], dtype="int64", batch=None)
            ol.switch_case(i, None, lambda: -s)
        """,
        """
        oarlock.ArgumentError: switch_case: the functions must be a dict by integer, not NoneType None
          model.py:5      ol.switch_case(i, None, lambda: -s)
          Try: ol.switch_case(index, {0: lambda: x, 1: lambda: -x}, lambda: x * 0.0)    (oarlock explain ArgumentError)
        """,
    )
