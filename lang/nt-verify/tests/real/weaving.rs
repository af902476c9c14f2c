//! A weaver of one page, for tests and the benchmark: a span before every instruction that has an address.
//!
//! It asks the reader of PTX where statements are and what registers are declared as, and nothing else of this house.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first thing that is wrong")]

use nt_ptx::syntax::{Instruction, Kind, Module, OperandKind};
use nt_ptx::{Edits, ModuleInfo};
use std::path::{Path, PathBuf};

/// A table of one cell a unit.
pub(crate) const CLAIM: &str = "prefix=nt_ zero@0:8 base.@t@8:8 cap.@t@16:8 stride.@t=8";

/// A stream, of 64 bytes of context with what else is there.
pub(crate) const STREAM: &str = "prefix=nt_ zero@0:8 base.ev@8:8 cap.ev@16:4 units.ev@20:4 cursor.ev@24:8 drops.ev@32:8 \
                                 stride.ev=16";

/// The real texts: of nvcc for several targets, debug builds too, and of Triton.
pub(crate) fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx");
    let folders = ["nvcc", "triton"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut paths: Vec<PathBuf> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// An access at a site, as a span may know it.
pub(crate) struct Access<'m> {
    /// The base of its address and that base's bits: 32 or 64.
    pub(crate) base: &'m str,
    pub(crate) bits: u32,
    /// `@%p1` without the `@`.
    pub(crate) guard: Option<&'m str>,
    /// Which span of the module it is.
    pub(crate) number: usize,
}

/// The text with the context given to every kernel, `entry` at the kernel's entry, and `span` before every access.
/// Gives how many spans there are.
pub(crate) fn weave(
    text: &str,
    claim: &str,
    size: u32,
    entry: &str,
    span: impl Fn(&Access<'_>) -> String,
) -> (String, usize) {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors());
    let mut edits = Edits::new();
    let mut number = 0;
    for (index, function) in module.functions.iter().enumerate().filter(|(_, function)| function.is_entry) {
        let parameter = format!(".param .align 8 .b8 nt_ctx[{size}] /*nt:ctx {claim}*/");
        let (at, new) = match (function.params.last(), function.list) {
            (Some(last), _) => (last.span.end, format!(", {parameter}")),
            (None, Some(list)) => (list.end - 1, parameter),
            (None, None) => (function.name.end, format!("({parameter})")),
        };
        edits.insert(at, format!("/*nt:edit {{*/{new}/*}}nt:edit*/"));
        let body = module.body(function);
        let first = body.get(
            (info.functions[index].first - function.body.as_ref().map_or(0, |b| b.statements.start)) as usize,
        );
        if let Some(first) = first.filter(|_| !entry.is_empty()) {
            edits.insert(first.span.start, format!("/*nt:{number}{{*/{entry}/*}}nt:{number}*/"));
            number += 1;
        }
        for (place, statement) in body.iter().enumerate() {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            // Before the pragma that speaks of it.
            let pragma = place.checked_sub(1).map(|before| body[before]);
            let pragma = pragma
                .filter(|s| matches!(s.kind, Kind::Pragma(text) if module.at(text).contains("used_bytes")));
            let at = pragma.map_or(statement.span.start, |pragma| pragma.span.start);
            for (base, bits) in bases(&module, &info, index, statement.span.start, &instruction) {
                let guard = instruction.guard.map(|guard| &module.at(guard.span)[1..]);
                let inner = span(&Access { base, bits, guard, number });
                edits.insert(at, format!("/*nt:{number}{{*/{inner}/*}}nt:{number}*/"));
                number += 1;
            }
        }
    }
    (edits.apply(text).unwrap(), number)
}

/// What the addresses of an instruction are made from: registers, and variables that can be named. Of a copy, the
/// registers that hold its size too.
fn bases<'m>(
    module: &Module<'m>,
    info: &ModuleInfo<'m>,
    function: usize,
    at: u32,
    instruction: &Instruction,
) -> Vec<(&'m str, u32)> {
    let mut bases = Vec::new();
    let is_copy = module.at(instruction.opcode).starts_with("cp.async");
    for operand in module.operands(instruction) {
        if let OperandKind::Name(name) = operand.kind
            && is_copy
            && let Some(register) = info.register_at(function, at, module.at(name))
        {
            bases.push((module.at(name), if register.ty.ends_with("64") { 64 } else { 32 }));
        }
        let OperandKind::Address { base: Some(base), .. } = operand.kind else { continue };
        let name = module.at(base);
        if let Some(register) = info.register_at(function, at, name) {
            bases.push((name, if register.ty.ends_with("64") { 64 } else { 32 }));
            continue;
        }
        let local = info.declared_at(function, at, name).map(|declared| declared.space);
        let space = local.or_else(|| info.variable(name).map(|variable| info.variables[variable].space));
        if matches!(space, Some(".global" | ".shared" | ".const")) {
            bases.push((name, 64));
        }
    }
    bases
}

/// A count of accesses to global memory as a weaver would write it: by thread, in `%nt_n`, and by SM, generic addresses
/// tested, under the guard.
pub(crate) fn counter(access: &Access<'_>) -> String {
    let Access { base, bits, .. } = access;
    let (guarded, guard) = match access.guard {
        None => (String::new(), "%nt_g"),
        Some(guard) if guard.starts_with('!') => {
            (format!("not.pred %nt_h, {}; and.pred %nt_g, %nt_g, %nt_h; ", &guard[1..]), "%nt_g")
        }
        Some(guard) => (format!("and.pred %nt_g, %nt_g, {guard}; "), "%nt_g"),
    };
    let address =
        if *bits == 64 { format!("mov.b64 %nt_a, {base}; ") } else { format!("cvt.u64.u32 %nt_a, {base}; ") };
    format!(
        "{{ .reg .pred %nt_g, %nt_h, %nt_q; .reg .b32 %nt_s, %nt_c; .reg .b64 %nt_a, %nt_b; {address}\
         isspacep.global %nt_g, %nt_a; {guarded}@{guard} add.u32 %nt_n, %nt_n, 4; mov.u32 %nt_s, %smid; \
         ld.param.u32 %nt_c, [nt_ctx+16]; setp.lt.and.u32 %nt_q, %nt_s, %nt_c, {guard}; ld.param.u64 %nt_b, [nt_ctx+8]; \
         mad.wide.u32 %nt_b, %nt_s, 8, %nt_b; @%nt_q red.global.add.u64 [%nt_b], 1; }}"
    )
}

/// An event of one slot as a weaver would write it: nearly all of a woven text is inserted then.
pub(crate) fn event(access: &Access<'_>) -> String {
    let Access { base, bits, number: n, .. } = access;
    let on = match access.guard {
        None => String::new(),
        Some(guard) => {
            let skip = guard.strip_prefix('!').map_or(format!("!{guard}"), str::to_owned);
            format!("@{skip} bra $nt_L{n};\n")
        }
    };
    let address = match bits {
        64 => format!("mov.b64 %nt_a, {base};"),
        _ => format!("cvt.u64.u32 %nt_a, {base};"),
    };
    format!(
        "{{
.reg .b32 %nt_r<24>; .reg .b64 %nt_d<8>; .reg .pred %nt_p<8>; .reg .b64 %nt_a;
{on}mov.u32 %nt_r0, %clock;
{address}
activemask.b32 %nt_r1;
mov.u32 %nt_r2, %lanemask_lt;
and.b32 %nt_r2, %nt_r2, %nt_r1;
setp.eq.u32 %nt_p0, %nt_r2, 0;
mov.b64 {{%nt_r3, %nt_r4}}, %nt_a;
and.b32 %nt_r4, %nt_r4, 65535;
or.b32 %nt_r4, %nt_r4, 0x30000;
and.b32 %nt_r5, %nt_n, 15;
setp.eq.and.u32 %nt_p1, %nt_r5, 0, %nt_p0;
@!%nt_p1 bra $nt_F{n};
ld.param.u32 %nt_r6, [nt_ctx+16];
setp.eq.u32 %nt_p2, %nt_n, 0xffff0000;
@%nt_p2 bra $nt_D{n};
popc.b32 %nt_r7, %nt_r2;
ld.param.u64 %nt_d0, [nt_ctx+24];
mad.wide.u32 %nt_d1, %nt_r7, 8, %nt_d0;
atom.global.add.u64 %nt_d2, [%nt_d1], 1;
ld.param.u32 %nt_r8, [nt_ctx+20];
cvt.u64.u32 %nt_d3, %nt_r8;
add.u64 %nt_d2, %nt_d2, %nt_d3;
shl.b64 %nt_d2, %nt_d2, 4;
cvt.u64.u32 %nt_d4, %nt_r6;
mov.u32 %nt_n, 0xffff0000;
setp.ge.u64 %nt_p3, %nt_d2, %nt_d4;
@%nt_p3 bra $nt_D{n};
ld.param.u64 %nt_d5, [nt_ctx+8];
mad.lo.u64 %nt_d6, %nt_d2, 16, %nt_d5;
mov.u32 %nt_r9, %tid.x;
mov.u32 %nt_r10, %ctaid.x;
mad.wide.u32 %nt_d7, %nt_r10, 1024, 1;
cvt.u64.u32 %nt_d3, %nt_r9;
add.u64 %nt_d7, %nt_d7, %nt_d3;
st.global.u64 [%nt_d6], %nt_d7;
cvt.u32.u64 %nt_r11, %nt_d2;
add.u32 %nt_n, %nt_r11, 1;
bra $nt_F{n};
$nt_D{n}:
mov.u32 %nt_r12, %tid.x;
shr.u32 %nt_r12, %nt_r12, 5;
ld.param.u32 %nt_r13, [nt_ctx+20];
setp.ge.u32 %nt_p4, %nt_r12, %nt_r13;
@%nt_p4 bra $nt_F{n};
ld.param.u64 %nt_d0, [nt_ctx+32];
mad.wide.u32 %nt_d1, %nt_r12, 4, %nt_d0;
red.global.add.u32 [%nt_d1], 1;
$nt_F{n}:
ld.param.u32 %nt_r14, [nt_ctx+16];
setp.lt.and.u32 %nt_p5, %nt_n, %nt_r14, %nt_p0;
ld.param.u64 %nt_d2, [nt_ctx+8];
mad.wide.u32 %nt_d3, %nt_n, 16, %nt_d2;
@%nt_p5 st.global.v4.b32 [%nt_d3], {{%nt_r3, %nt_r4, %nt_r1, %nt_r0}};
@%nt_p5 add.u32 %nt_n, %nt_n, 1;
$nt_L{n}:
}}"
    )
}
