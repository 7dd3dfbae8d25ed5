"""The spellings of 2017, each by a call of what is below: `ol.cpp`, `ol.framework`, `ol.net`, `ol.scope`, `ol.variable` and `ol.eval`."""
