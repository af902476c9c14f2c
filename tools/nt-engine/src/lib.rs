//! Choose, weave, verify, assemble, cache.
