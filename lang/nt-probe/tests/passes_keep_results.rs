//! The passes, and the closing of a probe over a site, change how a program computes and stores, and never what a reader
//! shows: random programs are run by an interpreter as they were lowered, and as they were prepared (narrow and wide) and
//! closed, and the columns of all records and all that is added to tables compared. What a site is asked is answered to the
//! one from its facts, to the other by `close`.
//!
//! A clock's value depends on the place in the source where it is read, so that programs of which a read was dropped can be
//! compared: one thread, whose clock begins anywhere and goes on by less than 2^32 cycles.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_ir::close::{Elements, Fact, Facts, SiteType};
use nt_ir::program::{
    Builtin, CompareOp, Op, Operand, Part, Probe, Program, SiteValue, Source, Tracepoint, Type, ValueId,
};
use nt_ir::{Options, close, eval, glob_matches, prepare};
use nt_probe::compile;
use proptest::prelude::*;

/// What one thread finds.
#[derive(Debug, Clone, Copy)]
struct Machine {
    /// Its clock when the kernel began.
    clock: u64,
    /// Cycles between two bytes of the source.
    pace: u64,
    /// Mixed into everything else that the machine tells.
    seed: u64,
    /// The instruction that it meets between the kernel's entry and exit.
    site: &'static Facts<'static>,
}

const PLAIN: Facts<'static> = Facts {
    kernel: "gemm_tn",
    func: "gemm_tn",
    file: "gemm.cu",
    line: 41,
    site: 7,
    op: Some("ld.global.v4.f32"),
    class: Some("load"),
    space: Some("global"),
    width: Some(32),
    elems: Some(4),
    macs: None,
    bytes: Fact::Known(16),
    pred: Fact::Known(true),
    addr: true,
    others: &[Part::Saddr],
    mark: None,
    callee: None,
    out: Some(Elements { ty: SiteType::Is(Type::U32), count: 4 }),
    inputs: &[Some(Elements { ty: SiteType::Is(Type::S16), count: 1 })],
    old: Some(Elements { ty: SiteType::Is(Type::S16), count: 1 }),
};

/// Sites that differ in what is known of them.
const SITES: &[Facts<'static>] = &[
    PLAIN,
    Facts {
        op: Some("cp.async.bulk"),
        class: Some("bulk_copy"),
        width: None,
        elems: None,
        bytes: Fact::Dynamic,
        out: None,
        inputs: &[Some(Elements { ty: SiteType::Is(Type::U64), count: 1 })],
        old: Some(Elements { ty: SiteType::Is(Type::U8), count: 1 }),
        others: &[Part::Taken, Part::Done],
        ..PLAIN
    },
    Facts { bytes: Fact::Absent, pred: Fact::Dynamic, macs: Some(2048), addr: false, inputs: &[], ..PLAIN },
    Facts {
        kernel: "scan",
        line: 3,
        width: Some(64),
        elems: Some(1),
        space: None,
        pred: Fact::Known(false),
        out: Some(Elements { ty: SiteType::Is(Type::S64), count: 1 }),
        old: Some(Elements { ty: SiteType::Is(Type::S32), count: 1 }),
        inputs: &[Some(Elements { ty: SiteType::Is(Type::U32), count: 1 })],
        ..PLAIN
    },
];

/// When a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Entry,
    Site,
    Exit,
}

impl Machine {
    /// What a site answers; what it does not have is 0, which no program here may show.
    fn site(self, op: &Op) -> u64 {
        let site = self.site;
        let mixed = |salt: u64| self.seed.wrapping_mul(salt) >> 7;
        match op {
            Op::Site(SiteValue::Width) => site.width.unwrap_or(0).into(),
            Op::Site(SiteValue::Elems) => site.elems.unwrap_or(0).into(),
            Op::Site(SiteValue::Macs) => site.macs.unwrap_or(0).into(),
            Op::Site(SiteValue::Line) => site.line.into(),
            Op::Site(SiteValue::Site) => site.site.into(),
            Op::Has(part) => site.has(*part).into(),
            Op::Match { what, glob } => site.name(*what).is_some_and(|name| glob_matches(glob, &name)).into(),
            Op::Operand(Operand::Addr) => mixed(3),
            Op::Operand(Operand::Bytes) => match site.bytes {
                Fact::Known(bytes) => bytes.into(),
                Fact::Dynamic => mixed(5) & 0xfff0,
                Fact::Absent => 0,
            },
            Op::Operand(Operand::Pred) => match site.pred {
                Fact::Known(holds) => holds.into(),
                Fact::Dynamic => mixed(9) & 1,
                Fact::Absent => 0,
            },
            Op::Operand(Operand::Saddr) => mixed(11) & 0xffff_ffff,
            Op::Operand(Operand::Taken) => mixed(13) & 1,
            Op::Operand(Operand::Done) => mixed(15) & 1,
            Op::Operand(operand) => self.value(*operand),
            other => panic!("{other:?} is not asked of a site"),
        }
    }

    /// The type of an operand that has the instruction's; of one that it does not have, any.
    fn site_type(self, operand: Operand) -> Type {
        let elements = match operand {
            Operand::Out(_) => self.site.out,
            Operand::In(number, _) => self.site.inputs.get(usize::from(number) - 1).copied().flatten(),
            _ => self.site.old,
        };
        match elements.map(|elements| elements.ty) {
            Some(SiteType::Is(ty)) => ty,
            _ => Type::U32,
        }
    }

    /// Its value, in the form of its type.
    fn value(self, operand: Operand) -> u64 {
        let salt = match operand {
            Operand::Out(index) => 17 + u64::from(index),
            Operand::In(number, index) => 31 * u64::from(number) + u64::from(index),
            // Half of the stores change nothing.
            _ if self.seed & 1 == 0 => {
                return self.site_type(operand).canonical(self.value(Operand::In(1, 0)));
            }
            _ => 23,
        };
        self.site_type(operand).canonical(self.seed.wrapping_mul(salt) >> 7)
    }

    /// The same as the number that it stands for.
    fn number(self, operand: Operand) -> i128 {
        let value = self.value(operand);
        if self.site_type(operand).is_signed() { i128::from(value as i64) } else { i128::from(value) }
    }

    /// A comparison of numbers, whatever their types are.
    fn compare(self, op: CompareOp, a: Operand, b: Operand) -> bool {
        let order = self.number(a).cmp(&self.number(b));
        match op {
            CompareOp::Eq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        }
    }

    fn builtin(self, builtin: Builtin, place: u32) -> u64 {
        let now = self.clock.wrapping_add(self.pace * u64::from(place));
        match builtin {
            Builtin::Clock => now,
            Builtin::ClockLow => now & 0xffff_ffff,
            Builtin::Time => now.wrapping_mul(3),
            Builtin::WarpSize => 32,
            Builtin::Lane => self.seed % 32,
            Builtin::Cu => self.seed % 132,
            other => {
                let kind = Builtin::ALL.iter().position(|&known| known == other).unwrap() as u64;
                other.ty().canonical(self.seed.wrapping_mul(kind + 1) % (1 << 20))
            }
        }
    }
}

/// The records that the thread saves, in order: the map, and what a reader shows of each column; and what it adds to tables.
/// Probes of instructions are closed first, if `closes`.
fn run(program: &Program, machine: Machine, closes: bool) -> Vec<(String, Vec<u64>)> {
    let mut states: Vec<u64> = program.states.iter().map(|state| state.init).collect();
    let mut records = Vec::new();
    for phase in [Phase::Entry, Phase::Site, Phase::Exit] {
        for probe in &program.probes {
            let runs_in = |point: &Tracepoint| match point {
                Tracepoint::KernelEntry { .. } => Phase::Entry,
                Tracepoint::KernelExit { .. } => Phase::Exit,
                _ => Phase::Site,
            };
            if !probe.points.iter().any(|point| runs_in(point) == phase) {
                continue;
            }
            if closes && phase == Phase::Site {
                let closed = close(program, probe, machine.site);
                let Some(closed) = closed.unwrap_or_else(|why| panic!("{why:?}")) else { continue };
                let open = |op: &Op| {
                    matches!(
                        op,
                        Op::Site(_)
                            | Op::Has(_)
                            | Op::Match { .. }
                            | Op::CastOperand(_)
                            | Op::BitsOperand(_)
                            | Op::CompareOperands(..)
                            | Op::ClockAfterOperand(..)
                    )
                };
                assert!(!closed.code.iter().any(|inst| open(&inst.op)));
                assert!(told_fields_are_constant(program, &closed));
                run_probe(program, &closed, machine, &mut states, &mut records);
            } else {
                run_probe(program, probe, machine, &mut states, &mut records);
            }
        }
    }
    records
}

/// What the code of an event tells is known where a probe is closed over a site.
fn told_fields_are_constant(program: &Program, closed: &Probe) -> bool {
    let is_constant = |id: &ValueId| {
        closed.code.iter().any(|inst| inst.result == Some(*id) && matches!(inst.op, Op::Const(_)))
    };
    closed.code.iter().all(|inst| match &inst.op {
        Op::Save { map, values } => {
            let told = &program.maps[map.0 as usize].told;
            values.iter().all(|(field, value)| !told.contains(field) || is_constant(value))
        }
        _ => true,
    })
}

fn run_probe(
    program: &Program,
    probe: &Probe,
    machine: Machine,
    states: &mut [u64],
    records: &mut Vec<(String, Vec<u64>)>,
) {
    let mut values = vec![0; probe.values.len()];
    for inst in &probe.code {
        let get = |id: &ValueId| values[id.0 as usize];
        let of = |id: &ValueId| probe.values[id.0 as usize].ty;
        if inst.guard.is_some_and(|guard| get(&guard) == 0) {
            continue;
        }
        let ty = inst.result.map_or(Type::U64, |result| of(&result));
        let result = match &inst.op {
            Op::Const(bits) => *bits,
            Op::Builtin(builtin) => machine.builtin(*builtin, inst.span.start),
            Op::Site(_) | Op::Operand(_) | Op::Has(_) | Op::Match { .. } => machine.site(&inst.op),
            Op::CastOperand(operand) => {
                eval::cast(machine.site_type(*operand), ty, machine.value(*operand)).unwrap()
            }
            Op::BitsOperand(operand) => ty.canonical(machine.value(*operand)),
            Op::CompareOperands(op, a, b) => machine.compare(*op, *a, *b).into(),
            Op::ClockAfter(builtin, _) | Op::ClockAfterOperand(builtin, _) => {
                machine.builtin(*builtin, inst.span.start)
            }
            Op::ReadState(state) => states[state.0 as usize],
            Op::Unary(op, a) => eval::unary(*op, ty, get(a)).unwrap(),
            Op::Binary(op, a, b) => eval::binary(*op, ty, get(a), get(b)).unwrap(),
            Op::Compare(op, a, b) => u64::from(eval::compare(*op, of(a), get(a), get(b)).unwrap()),
            Op::Cast(a) => eval::cast(of(a), ty, get(a)).unwrap(),
            Op::Bits(a) => ty.canonical(get(a)),
            Op::Select(c, a, b) => get(if get(c) == 0 { b } else { a }),
            Op::WriteState(state, value) => {
                states[state.0 as usize] = get(value);
                continue;
            }
            Op::Aggregate { table, value } => {
                let name = &program.tables[table.0 as usize].name;
                records.push((format!("@{name}"), vec![value.as_ref().map_or(1, get)]));
                continue;
            }
            Op::Save { map, values } => {
                let map = &program.maps[map.0 as usize];
                let field = |index: u32, to: Type| {
                    let (_, value) = &values[index as usize];
                    let ty = map.fields[index as usize].ty;
                    if ty == to { get(value) } else { eval::cast(ty, to, get(value)).unwrap() }
                };
                let shown = map.columns.iter().map(|column| match column.source {
                    Source::Field(index) => field(index, column.ty),
                    Source::Difference(end, length) => {
                        column.ty.canonical(field(end, column.ty).wrapping_sub(field(length, column.ty)))
                    }
                });
                records.push((map.name.clone(), shown.collect()));
                continue;
            }
        };
        values[inst.result.unwrap().0 as usize] = result;
    }
}

fn holds(source: &str, machine: Machine) {
    let (program, found) = compile(source, "t");
    let program = program.unwrap_or_else(|| panic!("{source}\n{found:?}"));
    let expected = run(&program, machine, false);
    for wide in [false, true] {
        let prepared = prepare(program.clone(), Options { wide }).unwrap();
        let text = nt_ir::text::print(&prepared.program);
        assert_eq!(run(&prepared.program, machine, true), expected, "{source}\n{text}");
    }
}

/// An expression of type u64.
fn number() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "clock()",
        "(clock() - start)",
        "start",
        "total",
        "(count as u64)",
        "(lane as u64)",
        "block",
        "(7 as u64)",
        "(0 as u64)",
        "(0xffffffffffffffff as u64)",
        "(4096 as u64)",
        "(1 as u64)",
        "(-1 as u64)",
        "LIMIT",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 30, 3, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "&", "|", "^", "<<", ">>"]);
        let comparison = prop::sample::select(vec!["<", "==", ">=", "!="]);
        let narrow = prop::sample::select(vec!["u32", "s32", "u8", "s16"]);
        let choice = (inner.clone(), comparison, inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            choice.prop_map(|(a, op, b, c, d)| format!("({a} {op} {b} ? {c} : {d})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("max({a}, {b})")),
            (inner.clone(), 0..20u32).prop_map(|(a, k)| format!("({a} / {})", 1_u64 << k)),
            (inner.clone(), 0..20u32).prop_map(|(a, k)| format!("(({a} as s64 % {}) as u64)", 1_u64 << k)),
            (inner.clone(), 0..20u32).prop_map(|(a, k)| format!("(({a} as s64 / {}) as u64)", 1_u64 << k)),
            (inner.clone(), narrow).prop_map(|(a, ty)| format!("({a} as {ty} as u64)")),
            inner.prop_map(|a| format!("~{a}")),
        ]
    })
}

/// Saves that `narrow_clocks` knows, and others.
fn save() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("ran.save(start, clock() - start, cu);".to_owned()),
        Just("ran.save(elapsed = clock() - start, start = start, cu = lane);".to_owned()),
        Just("ends.save(start, clock());".to_owned()),
        number().prop_map(|a| format!("ran.save(start, {a}, cu);")),
        (number(), number()).prop_map(|(a, b)| format!("rest.save({a}, {b} as u32, {b} as s16);")),
        number().prop_map(|a| format!("rest.save({a} as u32, 3, -4);")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_keep_what_readers_show(
        (entry, first, second, third) in (number(), number(), number(), number()),
        saves in prop::collection::vec(save(), 1..4),
        set_start in prop::sample::select(vec!["start = clock();", "if lane < 7 { start = clock(); }", "", "start = clock(); start = clock();"]),
        predicate in prop::sample::select(vec!["", "/lane != 3/", "/true/"]),
        restart in prop::sample::select(vec!["", "start = clock();"]),
        (clock, pace, seed) in (any::<u64>(), 1..(1_u64 << 20), any::<u64>()),
    ) {
        let saves = saves.join("\n  ");
        holds(
            &format!(
                "const LIMIT: u64 = 1 << 33;
                 map ran: array<thread> {{ start: u64, elapsed: u64, cu: u32 }}
                 map ends: array<thread> {{ start: u64, end: u64 }}
                 map rest: array<thread> {{ a: u64, b: u32, c: s16 }}
                 state start: u64; state total: u64 = 5; state count: u32; state unset: u64 = 9;
                 kernel:entry {{ {set_start} total = {entry}; }}
                 kernel:exit {predicate} {{
                   let v = {first};
                   if v & 1 == unset - 9 {{ count += v as u32; v = {second}; }} else {{ total ^= v; count++; }}
                   {restart}
                   {saves}
                   if count < 3 || v > {third} {{ rest.save(v, count, v as s16); }}
                 }}"
            ),
            // The source is about 2^11 bytes long, so all of it takes less than 2^32 cycles.
            Machine { clock, pace: pace.min(1 << 19), seed, site: &PLAIN },
        );
    }

    #[test]
    fn closing_keeps_what_readers_show(
        (first, second) in (at_site(), at_site()),
        (condition, inner) in (of_site(), of_site()),
        site in prop::sample::select(SITES.iter().collect::<Vec<_>>()),
        (clock, pace, seed) in (any::<u64>(), 1..(1_u64 << 19), any::<u64>()),
    ) {
        holds(
            &format!(
                "state start: u64; state total: u64; state seen: u32;
                 map m: array<thread> {{ total: u64, seen: u32 }}
                 map e: stream<warp> {{ at: u32, line: u32, size: u64, addr: lanes<u64>, l: lanes<u32> }}
                 warp inst:*:after, inst:* /sample(2)/ {{
                   e.save((clock() - start) as u32, line, has(width) ? width as u64 * 8 : line as u64 << 40, {first}, lane);
                 }}
                 warp kernel:entry {{ start = clock(); }}
                 inst:*:after, inst:* /{condition}/ {{
                   total += {first};
                   if {inner} {{ seen++; @a[line] = sum({second}); }} else {{ @b[class, block] = count(); }}
                 }}
                 kernel:exit {{ m.save(total, seen); @c[block] = sum(total); }}"
            ),
            Machine { clock, pace, seed, site },
        );
    }
}

/// An expression of type u64 that asks a site for nothing that it may lack.
fn at_site() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "clock()",
        "(clock() - start)",
        "total",
        "(has(bytes) ? bytes as u64 : 0)",
        "(has(width) ? (width / 8 * (has(elems) ? elems : 1)) as u64 : 1)",
        "(has(macs) ? macs as u64 : 7)",
        "(has(addr) ? addr as u64 : 3)",
        "(line as u64)",
        "(has(out) ? out as u64 : 1)",
        "(has(out) ? out as u8 as u64 : 1)",
        "(has(in1) ? in1 as s64 as u64 : 2)",
        "(has(in1) && has(old) && old == in1 ? 5 : 6)",
        "(has(in1) && has(out) && in1 >= out ? 5 : 6)",
        "(has(out) && elems == 4 ? (out[3] as bits u32) as u64 : 9)",
        "(has(saddr) ? saddr as u64 : 4)",
        "(has(taken) && taken ? 1 : 0)",
        "clock(total)",
        "(has(out) ? clock(out) : 0)",
        "(site as u64)",
        "(seen as u64)",
        "(16 as u64)",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "&", "^"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (of_site(), inner.clone(), inner).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
        ]
    })
}

/// A condition of which a part is known of the site.
fn of_site() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "op == \"ld.*\"",
        "class != \"load\"",
        "kernel == \"gemm*\"",
        "has(out)",
        "has(in1)",
        "has(bytes) && bytes >= 16",
        "has(width) && width == 32",
        "pred",
        "line < 10",
        "lane < 9",
        "seen == 0",
        "true",
    ]);
    leaf.prop_map(|leaf| format!("({leaf})")).prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["&&", "||", "=="]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            inner.prop_map(|a| format!("!{a}")),
        ]
    })
}

/// What the limit is for: beyond it the narrow form is wrong, and only it.
/// A unit that begins to count at its own number samples where number and count together are a multiple of N.
#[test]
fn samples_are_every_nth_time() {
    for (every, unit, warp) in [(16, "thread", 0), (10, "thread", 0), (16, "warp", 1), (7, "warp", 1)] {
        let source = format!(
            "map m: array<{unit}> {{ n: u32 }} state n: u32;
             {unit} bb:loop {{ n++; }} {unit} bb:loop /n % 2 == 1 && sample({every})/ {{ m.save(n); }}"
        );
        let (program, found) = compile(&source, "t");
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        for program in [program.clone(), prepare(program, Options::default()).unwrap().program] {
            let machine = Machine { clock: 0, pace: 1, seed: 12345, site: &PLAIN };
            let number = machine.builtin(if warp == 1 { Builtin::Warp } else { Builtin::Thread }, 0);
            let mut states: Vec<u64> = program.states.iter().map(|state| state.init).collect();
            let mut records = Vec::new();
            let (entry, site): (Vec<&Probe>, Vec<&Probe>) = program
                .probes
                .iter()
                .partition(|probe| matches!(probe.points[0], Tracepoint::KernelEntry { .. }));
            entry.iter().for_each(|probe| run_probe(&program, probe, machine, &mut states, &mut records));
            for _ in 0..200 {
                site.iter().for_each(|probe| run_probe(&program, probe, machine, &mut states, &mut records));
            }
            // The rest of the predicate holds in rounds 1, 3, 5 …, which are its times 1, 2, 3 ….
            let times = (1..=100).filter(|time| u64::is_multiple_of(number + time, every));
            let expected: Vec<_> = times.map(|time| ("m".to_owned(), vec![2 * time - 1])).collect();
            assert_eq!(records, expected, "{source}");
        }
    }
}

#[test]
fn a_launch_beyond_the_limit_needs_the_wide_form() {
    let source = nt_probe::shipped("block_sched").unwrap();
    let machine = Machine { clock: 1 << 40, pace: 1 << 33, seed: 1, site: &PLAIN };
    let (program, _) = compile(source, "block_sched");
    let program = program.unwrap();
    let truth = run(&program, machine, false);
    let wide = prepare(program.clone(), Options { wide: true }).unwrap();
    let narrow = prepare(program, Options { wide: false }).unwrap();
    assert_eq!(run(&wide.program, machine, true), truth);
    assert_ne!(run(&narrow.program, machine, true), truth);
    let short = Machine { pace: 1 << 20, ..machine };
    assert_eq!(run(&narrow.program, short, true), run(&wide.program, short, true));
}
