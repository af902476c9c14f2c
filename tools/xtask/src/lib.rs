//! The house's walls, as tests (`tests/tidy.rs`): which crate may see which, what libraries may not do, where
//! `unsafe` is allowed, how files begin and how long they are.
//!
//! They read manifests and sources as text. `docs/architecture.md` states the rules and their reasons.
