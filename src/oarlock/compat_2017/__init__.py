"""The 2017 API, as thin wrappers: `ol.cpp`, `ol.framework`, `ol.net`, `ol.scope`, `ol.variable` and `ol.eval`."""
