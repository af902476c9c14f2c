//! The claim: what a woven kernel says about the context block that it is launched with.
//!
//! It stands, as one comment, in every parameter edit, beside the parameter that it speaks of:
//!
//! ```text
//! k(
//!     .param .u64 k_param_0/*nt:edit {*/,
//!     .param .align 8 .b8 nt_ctx[32] /*nt:ctx prefix=nt_ zero@0:8 base.heat@8:8 cap.heat@16:8 stride.heat=16*//*}nt:edit*/
//! )
//! ```
//!
//! # Grammar
//!
//! ```text
//! claim  = "/*nt:ctx prefix=" PREFIX { " " field } "*/"       one space before each field, one line
//! PREFIX = "nt_" | "nt" NUMBER "_"                            nt_, nt1_, nt2_, …
//! field  = "zero@" OFFSET ":8"                                a word that the host sets to 0
//!        | "launch@" OFFSET ":" ("4" | "8")                   the launch's number
//!        | "base." MAP "@" OFFSET ":8"                        the address of the map's segment
//!        | "cap."  MAP "@" OFFSET ":8"                        how many units it has room for, a u64
//!        | "counts." ARRAY "@" OFFSET ":8"                    the address of a count for each unit
//!        | "units." ARRAY "@" OFFSET ":4"                     how many units the launch has, a u32
//!        | "cap."  STREAM "@" OFFSET ":4"                     how many slots it has, a u32
//!        | "units." STREAM "@" OFFSET ":4"                    how many warps the launch has, a u32
//!        | "cursor." STREAM "@" OFFSET ":8"                   the address of its cursor, one u64
//!        | "drops." STREAM "@" OFFSET ":8"                    the address of a u32 for each warp
//!        | "state." NAME "@" OFFSET ":" ("4" | "8")           of a clone: a state of its caller
//!        | "pos." NAME "@" OFFSET ":4"                        of a clone: which slot of a map is its caller's next
//!        | "stride." MAP "=" SIZE                             packed: bytes of one record
//!        | "columns." MAP "=" WIDTH { "," WIDTH }             columnar: bytes of one element of each column, in order
//!        | "pin." SYMBOL "=" NUMBER                           which word of `nt_pin` holds the address of that variable
//! MAP    = NAME                                               a map, whose records are stored
//!        | "@" [ NAME ]                                       a table, whose cells of 8 bytes are added to
//! ARRAY  = NAME                                            a map that has `counts` and `units`, both
//! STREAM = NAME                                            a map that has `units`, `cursor` and `drops`, all three
//! NAME   = a letter or `_`, then letters, digits and `_`
//! SYMBOL = an identifier of PTX
//! OFFSET, SIZE, NUMBER = decimal, no sign, no leading zero    WIDTH = "1" | "2" | "4" | "8"
//! ```
//!
//! Fields may stand in any order. Each map has exactly one `base`, one `cap` and one of `stride` and `columns`
//! (a presence byte, where the layout has one, is a column like the others); a table has a `stride`, a multiple of 8:
//! `base.@sync@24:8 cap.@sync@32:8 stride.@sync=24` is a table `sync` of three cells a unit. No two fields overlap,
//! each is aligned to its size, and the parameter is as large as the end of the last field, rounded up to 8:
//! `nt_ctx[N]` with that N. A stream's `stride` is 16, the bytes of a slot:
//!
//! ```text
//! /*nt:ctx prefix=nt_ base.ev@0:8 cap.ev@8:4 units.ev@12:4 cursor.ev@16:8 drops.ev@24:8 stride.ev=16*/
//! ```
//!
//! A map of which a unit may have several records has a count for each unit, too: 8 bytes of a warp's, whose records are
//! packed, and 4 of a thread's, whose are in columns.
//!
//! ```text
//! /*nt:ctx prefix=nt_ base.m@0:8 cap.m@8:8 counts.m@16:8 units.m@24:4 stride.m=16*/
//! ```
//!
//! # Pins
//!
//! A copy of a kernel must use the variables of its original, not copies of them. `pin.lut=0` says that word 0 of the
//! module's `nt_pin` holds the address of `.global` variable `lut`. All kernels of a module speak of one `nt_pin`: the
//! same symbol has the same number in each, every number from 0 on has a symbol, and `nt_pin` has as many words.
//!
//! ```text
//! /*nt:edit {*/.const .align 8 .b64 nt_pin[2];/*}nt:edit*/            once, at module level, before what uses it
//! …
//! /*nt:7{*/.reg .b64 %nt_g7;                                          outside of the braces: for the next instruction
//! { ld.const.b64 %nt_g7, [nt_pin+0]; }/*}nt:7*/
//! ld.global.f32 %f1, [/*nt:edit 6c7574{*/%nt_g7/*}nt:edit*/+16];      the symbol's name alone is replaced, …
//! ld.global.f32 %f2, /*nt:edit 5b6c75742d345d{*/[%nt_g8+-4]/*}nt:edit*/;     … or the operand, here `[lut-4]`
//! ```
//!
//! # Clones of functions
//!
//! Functions do not see the parameters of kernels. What is probed in one is a clone of it, which gets a block of its
//! own, by value: copies of words of the caller's block, and states of the caller. The function itself stays for whoever
//! calls it through a pointer. Each declaration of it has a clone, in their order, between two items of the module:
//!
//! ```text
//! /*nt:clone f k{*/.func (.param .b32 r) /*nt:edit 66{*/f__nt__k/*}nt:edit*/(.param .b32 a/*nt:edit {*/,
//!     .param .align 8 .b8 nt_ctx[24] /*nt:ctx prefix=nt_ base.m@0:8 cap.m@8:8 stride.m=16 state.n@16:4*//*}nt:edit*/)
//! { … /*nt:5{*/{ … ld.param.u64 %nt_b, [nt_ctx+0]; ld.param.u32 %nt_n, [nt_ctx+16]; … }/*}nt:5*/ … ret; }/*}nt:clone*/
//! …
//! /*nt:9{*/.param .align 8 .b8 nt_arg9[24]; {                         in the kernel, or in another clone
//! .reg .b64 %nt_a; ld.param.u64 %nt_a, [nt_ctx+8]; st.param.b64 [nt_arg9+0], %nt_a; … st.param.b32 [nt_arg9+16], %nt_s_n;
//! }/*}nt:9*/
//! call.uni (retval0), /*nt:edit 66{*/f__nt__k/*}nt:edit*/, (param0/*nt:edit {*/, nt_arg9/*}nt:edit*/);
//! ```
//!
//! A clone is of a function and for a kernel: it is called like the function, then `__`, the prefix without its last `_`, `__`
//! and the kernel's name, and is called from that kernel and its clones alone. Its words are those of its
//! caller's claim that are called alike, maps of the same shape; `state.n` is the caller's register `%nt_s_n`, or its own
//! `state.n`, and `pos.ev` is `%nt_c_ev`. A call without arguments gets a list: `f__nt__k/*nt:edit {*/, (nt_arg9)/*}nt:edit*/`. The word of the linkage
//! may be taken away, and `.weak` must be, `/*nt:edit 2e7765616b{*//*}nt:edit*/ .func …`: the linker would take another
//! module's clone for it.
//!
//! # What comes back
//!
//! A clone may give registers back to its caller, behind its function's result. The one return parameter becomes bytes for
//! that, of which the first are the function's own, with a claim of its own beside it; a function without one gets `nt_out`:
//!
//! ```text
//! /*nt:clone f{*/.func (/*nt:edit 2e…72{*/.param .align 8 .b8 r[8] /*nt:out pos.ev@4:4*//*}nt:edit*/) …f__nt…
//! { … /*nt:6{*/{ st.param.b32 [r+4], %nt_c_ev; }/*}nt:6*/ ret; … }/*}nt:clone*/
//! …
//! /*nt:edit 2e…30{*/.param .align 8 .b8 retval0[8]/*}nt:edit*/;       as `.param .b32 retval0;`
//! call.uni (retval0), …f__nt…, (…);/*nt:10 after{*/{ ld.param.b32 %nt_c_ev, [retval0+4]; }/*}nt:10*/
//! ```
//!
//! Of a call without a result the span before it declares one, `nt_ret9`, and an edit puts `(nt_ret9), ` before the name.
//! `out = "/*nt:out" { " " ( "state." | "pos." ) NAME "@" OFFSET ":" ("4" | "8") } "*/"`, by offset. The last span before
//! each `ret`, and at the end of the body, gives all of it; the first span after the call takes all of it.
//!
//! # What it is worth
//!
//! The verifier believes it about memory, and nothing else: record `i` of a packed map is the `stride` bytes at
//! `base + i·stride`, element `i` of column `c` is the `w(c)` bytes at `base + (w(0) + … + w(c-1))·cap + i·w(c)`, for
//! every `i` below `cap`; `base` is 16-byte aligned and `cap` a multiple of 16. Of a stream, slot `i` is the 16 bytes
//! at `base + i·16` for every `i` below `cap`, which is at most 0xffff_0000 (so that a slot's number and a small one
//! never add up to 2^32); the cursor's 8 bytes are apart from all others and aligned, and so are the 4 bytes at
//! `drops + i·4` for every `i` below `units`, and the 8 or 4 bytes at `counts + i·8` or `counts + i·4`. Whoever launches the kernel compares the claim with the context that it
//! fills, before it loads the module.

mod read;

/// Bytes of a stream's slot.
pub const SLOT: u32 = 16;

/// Bytes of a warp's count: what lane 0 took, and then what the other lanes did.
pub(crate) const WARP_COUNT: u32 = 8;
/// Bytes of a thread's count.
pub(crate) const THREAD_COUNT: u32 = 4;

/// What opens a claim.
pub(crate) const OPEN: &str = "/*nt:ctx ";

/// What opens the claim of what a clone gives back.
pub(crate) const OPEN_BACK: &str = "/*nt:out ";

/// A claim that holds together: fields aligned and apart, every map with a base, a capacity and a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// With which every name of the spans begins, behind an optional `%` or `$`.
    pub prefix: String,
    /// The fields of the block, by offset.
    pub fields: Vec<Field>,
    /// The maps and tables, by the order of their bases in the block.
    pub maps: Vec<Map>,
    /// The pins, by index.
    pub pins: Vec<Pin>,
    /// Of a clone, the registers that it gets from its caller: `s_n` is the state `n`, `c_ev` the position in the map `ev`.
    pub states: Vec<String>,
    /// How large the block is: the end of the last field, rounded up to 8.
    pub size: u32,
}

/// One field of the context block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it holds.
    pub kind: FieldKind,
    /// Where it begins in the block.
    pub offset: u32,
    /// How many bytes it takes.
    pub size: u32,
}

/// What a field of the context block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldKind {
    /// A word that is always 0.
    Zero,
    /// The number of the launch.
    Launch,
    /// The address of a map, by its index in [`Claim::maps`].
    Base(u32),
    /// The capacity of a map, by its index in [`Claim::maps`].
    Cap(u32),
    /// Of a stream, how many warps the launch has; of a map with counts, how many units.
    Units(u32),
    /// Of a stream, the address of the number of chunks that were claimed.
    Cursor(u32),
    /// Of a stream, the address of how many events each warp had no room for.
    Drops(u32),
    /// Of a map with counts, the address of the first unit's.
    Counts(u32),
    /// Of a clone, a register of its caller, by its index in [`Claim::states`].
    State(u32),
}

/// One map or table that the block points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Its name, a table's with the `@`.
    pub name: String,
    /// How its records lie in memory.
    pub shape: Shape,
    /// Bytes of a unit's count, if units have several records: 8 of a warp, 4 of a thread.
    pub counts: Option<u32>,
}

impl Map {
    /// Is it a table, whose cells are added to? Else the records are stored.
    pub fn is_table(&self) -> bool {
        self.name.starts_with('@')
    }

    /// Is it a stream, of whose slots one event may take several?
    pub fn is_stream(&self) -> bool {
        self.shape == Shape::Slots
    }
}

/// A variable of the module, and the word of `nt_pin` that holds its address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    /// Which word.
    pub index: u32,
    /// The variable's name.
    pub symbol: String,
}

/// How the records of a map lie in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Records of that many bytes, one behind the other.
    Packed {
        /// Bytes of one record.
        stride: u32,
    },
    /// A structure of arrays, each of `cap` elements.
    Columns(Vec<Column>),
    /// The slots of a stream, [`SLOT`] bytes each.
    Slots,
}

/// One array of a columnar map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// It begins at the base plus this many times the capacity.
    pub offset: u32,
    /// Bytes of one element.
    pub width: u32,
}

/// One register that a clone gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Back {
    /// As in [`Claim::states`].
    pub(crate) register: String,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// Reads `/*nt:out pos.ev@4:4*/`: by offset, aligned and apart, each once.
pub(crate) fn read_back(comment: &str) -> Option<Vec<Back>> {
    let words = comment.strip_prefix(OPEN_BACK)?.strip_suffix("*/")?;
    let mut all: Vec<Back> = Vec::new();
    for word in words.split(' ') {
        let (name, offset, size) = read::place(word)?;
        let register = read::carried(name)?;
        let end = all.last().map_or(0, |last| last.offset + last.size);
        let is_new = all.iter().all(|other| other.register != register);
        let fits = offset.is_multiple_of(size) && end <= offset && (size == 4 || !name.starts_with("pos."));
        all.push(Back { register, offset, size });
        if !(is_new && fits && all.len() <= read::MOST) {
            return None;
        }
    }
    Some(all)
}

impl Claim {
    /// The field that begins there, if one does.
    pub(crate) fn field_at(&self, offset: u32) -> Option<Field> {
        let place = self.fields.binary_search_by_key(&offset, |field| field.offset).ok()?;
        self.fields.get(place).copied()
    }
}

#[cfg(test)]
mod tests;
