//! `--explain SLUG`: what a kind of diagnostic means, with the smallest program that has it and the way out.

/// Every slug that the front end can raise, and its explanation.
pub const SLUGS: &[(&str, &str)] = &[];

/// The explanation of `slug`.
pub fn explain(slug: &str) -> Option<&'static str> {
    SLUGS.iter().find(|(name, _)| *name == slug).map(|(_, text)| *text)
}
