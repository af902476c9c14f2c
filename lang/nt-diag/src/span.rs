//! A range of bytes in a text of at most 4 GiB.

/// Byte offsets `start..end` into one text. Eight bytes, so that every token and node can carry one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte; never below `start`.
    pub end: u32,
}

impl Span {
    /// `start..end`; an end before the start is taken as an empty span at `start`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end: end.max(start) }
    }

    /// An empty span: a place between two bytes.
    pub fn at(offset: u32) -> Self {
        Span { start: offset, end: offset }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Its bytes as a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The text it covers; empty where it lies outside of `text` or cuts a character.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }

    /// How many bytes it covers.
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Does it cover nothing?
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Does all of `other` lie in it?
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl From<std::ops::Range<usize>> for Span {
    /// Offsets beyond 4 GiB are clamped; readers refuse such texts before they make spans.
    fn from(range: std::ops::Range<usize>) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span::new(clamp(range.start), clamp(range.end))
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
