//! The rules, by number, and what each forbids in words for people.
//!
//! `V6` of a diagnostic is what `--explain V6` takes. A rule's paragraph says what it forbids, gives an example and
//! says why the assembler is no help: most of the examples assemble in silence (tried with ptxas 13.0).

/// One rule of the verifier. The numbers are those of the manual; the one missing here speaks of what only
/// shows after assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The woven text without its spans, edits undone, is the original.
    V1,
    /// Spans stand at statement boundaries of the original.
    V2,
    /// A span alone is whole statements.
    V3,
    /// Names begin with the prefix, which the original does not use.
    V4,
    /// Branches go forward, to labels of their own span.
    V5,
    /// Instructions are on the list.
    V6,
    /// Only registers of the spans are written.
    V7,
    /// No synchronisation but among the lanes that stand there anyway.
    V8,
    /// What is read has a value, and the value that was meant.
    V9,
    /// Registers of the program are read when their values are there.
    V10,
    /// Stores and additions stay within the records of the maps and tables.
    V11,
    /// State is assigned before it can be used, and effects happen when their site does.
    V12,
    /// A kernel gets exactly one parameter, last.
    V13,
    /// `.version` only rises, `.target` stays.
    V14,
    /// A clone is its function, and gets what its claim says.
    V15,
    /// A pinned variable is the original's, by its own pin.
    V16,
    /// What pruning drops is not missed.
    V17,
}

impl Rule {
    /// All of them, in order.
    pub const ALL: [Rule; 17] = [
        Rule::V1,
        Rule::V2,
        Rule::V3,
        Rule::V4,
        Rule::V5,
        Rule::V6,
        Rule::V7,
        Rule::V8,
        Rule::V9,
        Rule::V10,
        Rule::V11,
        Rule::V12,
        Rule::V13,
        Rule::V14,
        Rule::V15,
        Rule::V16,
        Rule::V17,
    ];

    /// `V6`
    pub fn name(self) -> &'static str {
        match self {
            Rule::V1 => "V1",
            Rule::V2 => "V2",
            Rule::V3 => "V3",
            Rule::V4 => "V4",
            Rule::V5 => "V5",
            Rule::V6 => "V6",
            Rule::V7 => "V7",
            Rule::V8 => "V8",
            Rule::V9 => "V9",
            Rule::V10 => "V10",
            Rule::V11 => "V11",
            Rule::V12 => "V12",
            Rule::V13 => "V13",
            Rule::V14 => "V14",
            Rule::V15 => "V15",
            Rule::V16 => "V16",
            Rule::V17 => "V17",
        }
    }

    /// The rule in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Rule::V1 => {
                "the woven text without its spans, with declared edits undone, is the original byte for byte"
            }
            Rule::V2 => {
                "a span stands at a statement boundary of the original, in a kernel that has the context"
            }
            Rule::V3 => "a span alone is whole statements in braces of its own",
            Rule::V4 => "names of spans begin with the prefix, which no name of the original does",
            Rule::V5 => "a span branches only forward, to a label of its own",
            Rule::V6 => "a span holds only instructions of the list",
            Rule::V7 => "a span writes only its own registers and state",
            Rule::V8 => "a span waits for no lane that is not there anyway",
            Rule::V9 => "what a span reads was assigned on every path, and means what it seems to",
            Rule::V10 => "a register of the program is read when its value is there",
            Rule::V11 => "a store or addition stays within a record of its map or table, below the capacity",
            Rule::V12 => "state is assigned first of all, and effects happen only when their site does",
            Rule::V13 => "a kernel gets exactly one parameter, the context, as its last",
            Rule::V14 => "`.version` is only raised, `.target` never touched",
            Rule::V15 => "a clone is its function, and is called with what its claim says",
            Rule::V16 => "a pinned variable is reached by its own pin, everywhere, at the same offset",
            Rule::V17 => "a pruned text misses nothing that it names",
        }
    }

    /// The rule in a paragraph: what it forbids, an example, why.
    pub fn explain(self) -> &'static str {
        match self {
            Rule::V1 => {
                "V1: undoing. Every span is bracketed by `/*nt:N{*/` and `/*}nt:N*/`, every other change by \
                 `/*nt:edit HEX{*/` and `/*}nt:edit*/`, where HEX is the replaced bytes in hex. Taking the spans out and \
                 the edits back must give the original byte for byte; the numbers N are unique, nothing nests, and the \
                 original holds no such mark itself. Example: a woven text in which `add.s32 %r1, %r2, 1;` of the kernel \
                 became `add.s32 %r1, %r2, 2;` assembles as well as before. Why: all other rules speak of inserted text \
                 alone; this one makes sure that there is no other difference."
            }
            Rule::V2 => {
                "V2: places. A span stands between two statements of the original, outside of comments, in the body of a \
                 kernel whose parameter list got the context, or of any function where variables are pinned. Not between a guard and its opcode, in an operand or \
                 `.branchtargets` list, between a label and the `.pragma` or table behind it, behind a pragma that speaks \
                 of the next instruction. Examples that ptxas accepts in silence: `@%p1 /*nt:1{*/{ … }/*}nt:1*/ ret;` guards \
                 the first inserted instruction and returns always; a span between a label and its `.pragma \"nounroll\"` \
                 detaches the pragma, and one copy of a loop becomes 64. A span marked `after` stands directly behind an instruction \
                 that goes on there, no branch or exit. Why: the same statements at another place are another program."
            }
            Rule::V3 => {
                "V3: a span alone. The text of a span, read by itself, is groups in braces that close, of whole \
                 statements: `.reg` declarations, labels, instructions. Before the first group, the span at the kernel's \
                 entry may declare state, and any other a register for a pinned operand of the instruction behind it, or what \
                 it saves for the spans after that. No other directive, no string, no comment left open, no byte but plain ASCII. \
                 Example: a span that ends in `// done` without a line end swallows the kernel's next statement. Why: \
                 inserted text must not change how the text around it is read, and what it declares must not leak."
            }
            Rule::V4 => {
                "V4: names. Every register and label of a span begins with the claim's prefix (`%nt_x`, `$nt_L`), no \
                 identifier of the original does, and no name is declared twice where both are seen. Example: \
                 `{ .reg .b32 %r1; mov.u32 %r1, 0; }` is a register of its own in a span, but a state `%r1` at function \
                 level is the kernel's. Why: names are what ties inserted code to the kernel's; apart, neither can reach the other."
            }
            Rule::V5 => {
                "V5: control. A span's `bra` goes to a label of the same span, and forward; no instruction stands where \
                 nothing reaches it. Examples that assemble: `bra $L__BB0_2;` to a label of the kernel, `$nt_L: … bra \
                 $nt_L;`. Why: a span that can only go forward and only within itself ends, and where it ends the kernel \
                 goes on."
            }
            Rule::V6 => {
                "V6: instructions. Spans hold only the opcodes of a list, in the exact forms listed: moves, conversions, \
                 integer and float arithmetic, logic, shifts, comparisons, `activemask`, `ld.param` of the context, \
                 `ld.const` of `nt_pin`, `st.global`, `red.global.add` and `atom.global.add` of `.u64` and `.u32` (relaxed, of \
                 the device), `bra`, the load of what the store at the site overwrites (`ld`, `ld.global` or `ld.shared` as that \
                 store has it, with its address, width and guard; of a pinned variable the address by its pin), and what V8 allows. Not there: anything with `.cc` (a carry chain of the kernel may run through the place), \
                 division of 64 or 16 bits and full-precision division and square root (ptxas makes calls of them, and a \
                 call among asynchronous matrix instructions serialises these), calls, barriers, fences, exits, anything \
                 `.volatile`, `.acquire`, `.release` or `.aligned`, every other load, every other memory and every other atomic. Example: \
                 `div.u64 %nt_a, %nt_b, 3;` assembles in silence. Why: what is not known to be harmless is not."
            }
            Rule::V7 => {
                "V7: destinations. An instruction of a span writes registers that the span declares, or state; all of its \
                 destinations, in vectors and pairs too, of the type's own width. Example: `mov.u32 %r4, %smid;` in a span \
                 destroys the kernel's `%r4` and assembles. Why: the kernel must find its registers as it left them."
            }
            Rule::V8 => {
                "V8: synchronisation. No operation of a span waits for another lane, but `redux.sync`, `vote.sync`, \
                 `match.any.sync` and `shfl.sync`, whose membermask is the register that `activemask` wrote in the same \
                 span, under the same guard, with nothing between that may part the lanes: no label and no branch, so that every \
                 lane of the mask comes to the operation. The module's version and target must have them (`redux.sync`: PTX 7.0, sm_80). Example: \
                 `elect.sync _|%nt_p, 0xffffffff;` assembles in silence, and ptxas then drops the kernel's own \
                 reconvergence (BSSY, BSYNC) around it, since all lanes are said to be there. Why: lanes that took another \
                 branch never come, or come to the wrong place."
            }
            Rule::V9 => {
                "V9: sources. What a span reads is a constant, a register of its own that was assigned on every path \
                 before (a definition under a guard counts under that guard), state, what the instruction at the site reads \
                 itself (its guard, its source registers with the width that the program declares for them there, the \
                 variable of its address; in a span after it also what it wrote, and what a span before it saved; after a wait, what the \
                 asynchronous instructions wrote that it waits for, where nothing between jumps, ends, calls or has a label), a special register that the kernel does not shadow there, a word of `nt_pin`, or \
                 a whole field of the context, as the claim has it (of a number, its low half too). Examples that ptxas \
                 accepts in silence: reading `%nt_a` that nothing assigned; `%f1` before the load that writes it; \
                 `ld.param.u64 %nt_a, [nt_ctx+64];` behind a context of 32 bytes; `%clock` where the kernel declared \
                 `.reg .b32 %clock;`. Why: each of them is a value that nobody meant."
            }
            Rule::V10 => {
                "V10: the time of reading. A register that an asynchronous instruction writes (`wgmma.mma_async`, \
                 `tcgen05.ld`), or that `wgmma` takes as a fragment from its `wgmma.fence` on, is read by spans only where every way from one of its kind leads over the wait for all of them \
                 (`wgmma.commit_group` and `wgmma.wait_group 0`, `tcgen05.wait::ld`), none of these under a guard; and a register \
                 that the kernel assigns under guards only is read under the guard of the site only. Examples that assemble: a \
                 span before `st.shared` that reads an accumulator of `wgmma` makes ptxas wait there, or serialise all of them, \
                 behind `wait_group 1` too; one that reads the result of `tcgen05.ld` before `tcgen05.wait::ld`, or behind a wait \
                 that one of two ways leads past, reads what is not there. Why: the assembler takes a register that nothing \
                 assigned on some path for any value."
            }
            Rule::V11 => {
                "V11: memory. The address of a store is a base of the claim, plus index × the record's stride, plus a \
                 constant within the record (of a column: the base, plus the column's offset × the capacity, plus index × \
                 the element's width), and the store stands where index < that map's own capacity was compared as \
                 unsigned and found true. The same holds for `red.global.add` and `atom.global.add` and the cells of a table (`@name` in the \
                 claim); records of maps are not added to, cells of tables not stored to. All in 64-bit arithmetic, aligned \
                 to the width. Of a stream, slots are stored like records, where a part of a slot may also be told by a masked \
                 number (`(rank & 3) × 4`); one comparison of `slot + n` speaks for the slots from `slot` on too, where `slot` \
                 itself is below the capacity or the sum has 64 bits; `atom.global.add.u64` adds 1 to the cursor, at an address \
                 that is the cursor's for every lane that comes there (plus 8 × the number of lower lanes of those, say, where \
                 that was found 0); `red.global.add.u32` adds to `drops` + 4 × a warp that was found below `units`. Of a map with \
                 `counts`, `st.global.b32` stores to `counts` + 8 × a warp, or + 4 × a thread, that was found below its `units`, \
                 and `atom.global.add.u32` adds 1 to a warp's upper half, in one lane as at a cursor. Nothing else \
                 is written, in no other state space. Examples that assemble: the comparison left out, or made with the capacity \
                 of another map; two slots written where one was compared; a claim by all lanes, with their ranks in the \
                 address; `st.shared.u32`. Why: a record beyond its map is somebody else's memory."
            }
            Rule::V12 => {
                "V12: state and effects. State is declared in the span at the kernel's entry, before any label or \
                 instruction, and that span assigns it on every path. In a span before an instruction with a guard, stores, \
                 additions and writes of state stand under that guard: behind `@!%p1 bra $nt_L; … $nt_L:` before `@%p1 ret;`, \
                 or predicated with it or with a predicate that implies it. At a branch the lanes are there whichever way they \
                 go: before `@%p1 bra` no guard is asked for; nor where a span is marked `reach`, which stands before an instruction \
                 with a guard and is for all lanes that get there. That is no hole: effects reach maps and state alone, of which the \
                 kernel reads nothing, and what is read there stays asked about (V10). Nor is a guard asked for before a \
                 `bra` of a span, which has no effect: it goes forward in its own span (V5), behind its label holds only what \
                 holds on every way there, so that no effect comes out from under its guard, and all lanes come to the \
                 span's end. A span after an instruction stands under that one's \
                 guard as it was before. (Another span may declare a `.b64` register for a pinned operand of the instruction \
                 behind it, V16, and what it saves for spans after that.) Example: without \
                 that branch the exit of a thread that does not leave is recorded, and the text assembles. Why: state that \
                 a loop can reach unassigned is garbage, and an effect without its site is a lie."
            }
            Rule::V13 => {
                "V13: the context parameter. The only change of a signature is one more parameter, \
                 `.param .align 8 .b8 nt_ctx[N]`, last, on an entry whose own symbol is no operand anywhere, on its forward \
                 declarations too, with the claim beside it and N the claim's size. Example: a `.func` that got one more \
                 parameter and is still called through a pointer with the old `.callprototype` assembles in silence and \
                 reads garbage. Why: whoever launches the kernel fills exactly what the claim says."
            }
            Rule::V14 => {
                "V14: the header. `.version` may be raised by a declared edit of its number, never lowered; `.target` stays \
                 as it is. Examples: `.target sm_90a` made `sm_90` loses wgmma, `.version` lowered loses what the kernel \
                 uses. Why: raising the version alone changes no machine code (tried from 7.8 to 9.0); anything else may."
            }
            Rule::V15 => {
                "V15: clones. A function that is probed stays as it is, for calls through pointers; what is woven is a copy \
                 of it for each kernel, `f__nt__k`, inserted between two items for each of its declarations. Without its spans, its name and its \
                 one parameter more, a copy is its function byte for byte, but that it is not weak. A call of it is a direct call of the function, \
                 redirected, with one argument more, which the span directly before it declares and fills on every way with \
                 what the copy's claim says, in that kernel or in a copy for it: words of the caller's own context that are called alike, of maps of the same shape, \
                 and states by their names. What comes back lies behind the function's own result, whose bytes stay where they were, in the \
                 clone's return parameter and in what each call declares for it: the last span before every `ret` gives all of it, \
                 the first span behind the call takes all of it into the caller's registers of these names. Examples that assemble: a function that got a parameter in place, called through a \
                 pointer; a call whose argument has base and capacity exchanged, or a word that nothing stored; a call of another kernel's copy, which adds to that kernel's cells. Why: a copy \
                 believes its claim as a kernel does, but only its callers can keep it."
            }
            Rule::V16 => {
                "V16: pins. `pin.lut=1` of the claims says that word 1 of the module's `nt_pin` holds the address of \
                 `.global` variable `lut`. An edit replaces `lut`, alone or as a whole operand, by a register that a span \
                 directly before the instruction declares outside of its braces and loads from that word, offset kept; the \
                 rest of the instruction stays. No use of a pinned variable is left out. Examples that assemble: the \
                 address of another pin; `ld.const.u32 %r1, [%nt_g];` for a pinned `.const` reads the constant bank at the \
                 address's low bits; one of two uses left as it was. Why: the copy of a kernel must work on the program's own \
                 variables, not on copies of them."
            }
            Rule::V17 => {
                "V17: pruning. A pruned text is the original minus whole functions and variables. No kept item names a \
                 dropped one, by call, operand, initialiser or alias, all declarations of a name go together, and \
                 directives and debug sections stay. Example: with the definition of an `.extern .global` dropped and the \
                 declaration kept, ptxas silently makes a definition of it, in other memory. Why: what is left must mean \
                 what it meant."
            }
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A paragraph on the rule of that name (`V6`, case ignored): what it forbids, an example, why.
pub fn explain(rule: &str) -> Option<&'static str> {
    Rule::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(rule)).map(Rule::explain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_explains_itself() {
        for rule in Rule::ALL {
            let text = explain(rule.name()).expect("has a paragraph");
            assert!(text.starts_with(&format!("{rule}: ")), "{rule}");
            assert!(
                text.contains("Example") && text.contains("Why: "),
                "{rule} wants an example and a reason"
            );
        }
        assert_eq!(explain("v6"), explain("V6"));
        assert_eq!(explain("V99"), None);
        assert!(Rule::ALL.is_sorted());
    }
}
