//! What a picture is made of, before it is SVG or PNG: rectangles, lines, texts, and the grid.
//!
//! Lengths are pixels. Texts are monospaced, so that both forms break and align them alike.

use super::colours::Rgb;

/// A whole picture.
pub(super) struct Scene {
    /// Pixels.
    pub(super) width: u32,
    /// Pixels.
    pub(super) height: u32,
    /// What a picture is called where it cannot be seen.
    pub(super) title: String,
    /// In the order in which they are drawn.
    pub(super) items: Vec<Item>,
}

/// Something to be drawn.
pub(super) enum Item {
    /// Filled.
    Rect { x: u32, y: u32, width: u32, height: u32, fill: Rgb },
    /// One pixel wide, along an axis.
    Line { from: (u32, u32), to: (u32, u32), stroke: Rgb },
    /// On its base line.
    Text { x: u32, y: u32, text: String, size: Size, anchor: Anchor, fill: Rgb },
    /// Cells of one size, those of a step of colour each.
    Cells { x: u32, cell: (u32, u32), runs: Vec<Run> },
}

/// Cells of one row side by side that have one colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// Their step of colour.
    pub(super) step: u32,
    /// The upper edge, in pixels.
    pub(super) y: u32,
    /// The first cell.
    pub(super) first: u32,
    /// How many.
    pub(super) cells: u32,
}

/// How large a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Numbers at axes.
    Small,
    /// Sentences.
    Normal,
    /// The title.
    Title,
}

impl Size {
    /// Pixels from one character to the next.
    pub(super) fn advance(self) -> u32 {
        match self {
            Size::Small => 8,
            Size::Normal => 9,
            Size::Title => 10,
        }
    }
}

/// Which end of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}
