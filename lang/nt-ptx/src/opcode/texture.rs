//! Textures and surfaces: PTX ISA 9.0, sections 9.7.10 and 9.7.11.
//!
//! Which texels a coordinate comes to lies in the texture, so that there is no address and no count of bytes.

use super::class::Class::Texture;
use super::row::Role::In;
use super::row::{Also, D_A, Out, Row, Size, also, row};

const MULTISAMPLE: &[Also] = &[
    also(".2dms", 3, 2, 30),
    also(".a2dms", 3, 2, 30),
    also(".cube", 3, 0, 20),
    also(".acube", 3, 0, 20),
    also(".f16", 4, 2, 53),
    also(".f16x2", 4, 2, 53),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("tex", Texture, "9.7.10.3", D_A).size(Size::First).out(Out::First).also(&[MULTISAMPLE]),
    row("tld4", Texture, "9.7.10.4", D_A).size(Size::First).out(Out::First).since(2, 2).on(20),
    row("txq", Texture, "9.7.10.5", D_A).size(Size::First).out(Out::First).since(1, 5),
    row("istypep", Texture, "9.7.10.6", D_A).out(Out::Is("pred")).since(4, 0).on(30),
    row("suld", Texture, "9.7.11.1", D_A).size(Size::First).out(Out::First).since(1, 5).on(20),
    row("sust", Texture, "9.7.11.2", &[In, In]).size(Size::First).since(1, 5).on(20),
    row("sured", Texture, "9.7.11.3", &[In, In]).size(Size::First).since(2, 0).on(20),
    row("suq", Texture, "9.7.11.4", D_A).size(Size::First).out(Out::First).since(1, 5),
];
