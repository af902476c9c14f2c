//! Arrays with a capacity, on kernels small enough that what each unit must have taken and kept is worked out here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_differ::device::{self, Given, Job, Ran, Text};
use nt_differ::probed::{self, Probed};
use nt_differ::records::{self, Record};
use nt_differ::sidecar::Shape;
use nt_differ::slots::{self, Unit};
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use std::collections::BTreeMap;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"src/k.cu\"\n";

/// Schedules: the plain one, in which lanes that have parted meet again as soon as they can, and two in which they do so by
/// chance, also at the branches of what is woven in.
const SEEDS: [Option<u64>; 3] = [None, Some(5), Some(77)];

/// Blocks whose threads are no multiple of 32, in one to three dimensions.
const SHAPES: [([u32; 3], [u32; 3]); 4] =
    [([3, 1, 1], [48, 1, 1]), ([2, 3, 1], [10, 5, 1]), ([1, 2, 2], [4, 3, 6]), ([2, 1, 2], [1, 1, 1])];

/// A probe in kernel `k`, launched in some shape.
struct Case<'t> {
    ptx: &'t str,
    probe: String,
    grid: [u32; 3],
    block: [u32; 3],
    buffer: Vec<u32>,
}

/// What the runs of a case left.
struct Done {
    woven: Probed,
    job: Job,
    runs: Vec<Ran>,
}

impl Case<'_> {
    /// Runs it in all schedules, with what holds of the launch relied on and not. The kernel must leave the memory that it
    /// leaves without the probe.
    fn run(&self) -> Vec<Done> {
        let ptx = format!("{HEAD}{}", self.ptx);
        let text = Text::load(&ptx).unwrap_or_else(|why| panic!("{why}"));
        let prepared =
            probed::compile(&self.probe, "test").unwrap_or_else(|why| panic!("{}: {why}", self.probe));
        let shape = Shape { grid: self.grid, block: self.block, shared: 0, cooperative: false };
        let buffer = self.buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
        let job = Job { kernel: "k".into(), shape, args: vec![Given::Buffer(buffer)], variables: Vec::new() };
        let one = |assume| {
            let woven = Probed::weave(&text, &prepared, assume);
            let woven = woven.unwrap_or_else(|why| panic!("{}: {why}", self.probe));
            assert_eq!(woven.woven.refused, [], "{}", self.probe);
            let run = |seed| {
                let options = Options { seed, sms: 3, max_steps: 1 << 20 };
                let plain = device::run(&text.program, &job, &options, None).unwrap();
                let ran = device::run(&woven.program, &job, &options, Some(&woven));
                let ran = ran.unwrap_or_else(|why| panic!("{}: {why}\n{}", self.probe, woven.woven.text));
                device::same(&plain, &ran).unwrap_or_else(|why| panic!("{}: {why}", self.probe));
                ran
            };
            let runs = SEEDS.into_iter().map(run).collect();
            Done { woven, job: job.clone(), runs }
        };
        [Conditions::NONE, Conditions::of(self.grid, self.block)].into_iter().map(one).collect()
    }

    /// The units of array `name`, the same in all runs: those of threads.
    fn units(&self, name: &str) -> Vec<Unit> {
        self.same_units(name, |done| &done.runs)
    }

    /// The same in the plain schedule alone.
    fn plain_units(&self, name: &str) -> Vec<Unit> {
        self.same_units(name, |done| &done.runs[..1])
    }

    fn same_units(&self, name: &str, runs: impl Fn(&Done) -> &[Ran]) -> Vec<Unit> {
        let mut all: Option<Vec<Unit>> = None;
        for done in self.run() {
            for ran in runs(&done) {
                let units = done.units(ran, name);
                match &all {
                    None => all = Some(units),
                    Some(before) => assert_eq!(*before, units, "{}", self.probe),
                }
            }
        }
        all.unwrap()
    }

    fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    fn warps(&self) -> u64 {
        self.threads().div_ceil(32)
    }
}

impl Done {
    /// The run in the plain schedule.
    fn plain(&self) -> &Ran {
        &self.runs[0]
    }

    fn units(&self, ran: &Ran, name: &str) -> Vec<Unit> {
        slots::read(&self.woven, "k", ran, name).unwrap_or_else(|why| panic!("{why}"))
    }
}

/// What an array that takes `all`, in order, into `capacity` places has in them.
fn kept(all: &[Record], capacity: usize, policy: &str) -> Vec<Option<Record>> {
    let mut places = vec![None; capacity];
    for (number, record) in all.iter().enumerate() {
        match policy {
            "drop" if number >= capacity => {}
            "drop" => places[number] = Some(record.clone()),
            _ => places[number % capacity] = Some(record.clone()),
        }
    }
    places
}

/// Places that nothing was saved to.
fn none(count: usize) -> Vec<Option<Record>> {
    vec![None; count]
}

/// All threads go round as often as the buffer's first word says.
const ROUNDS: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	ld.global.u32 %r1, [%rd1];
	mov.u32 %r2, 0;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_end;
$L_round:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %r1;
	@%p2 bra $L_round;
$L_end:
	ret;
}
";

#[test]
fn warps_that_stay_together_count_in_lane_0() {
    for (capacity, rounds, policy) in [
        (1, 0, "drop"),
        (1, 1, "drop"),
        (1, 5, "drop"),
        (1, 5, "wrap"),
        (2, 5, "wrap"),
        (3, 2, "wrap"),
        (3, 3, "drop"),
        (3, 7, "wrap"),
        (3, 7, "drop"),
        (8, 7, "drop"),
        (8, 21, "wrap"),
        (5, 21, "wrap"),
        (5, 21, "drop"),
    ] {
        let probe = format!(
            "map m: array<warp>[{capacity}] {policy} {{ round: u32, w: u64 }}
             state n: u32;
             warp ptx:\"add.u32\" {{ m.save(n, warp); n += 1; }}"
        );
        for (grid, block) in SHAPES {
            let case = Case { ptx: ROUNDS, probe: probe.clone(), grid, block, buffer: vec![rounds] };
            for done in case.run() {
                for (is_plain, ran) in [true, false, false].into_iter().zip(&done.runs) {
                    let units = done.units(ran, "m");
                    assert_eq!(units.len() as u64, case.blocks() * case.warps());
                    for (warp, unit) in (0..).zip(units) {
                        let all: Vec<Record> =
                            (0..rounds).map(|round| vec![u64::from(round), warp]).collect();
                        let (own, rest) = unit.places.split_at(capacity);
                        assert_eq!(own, kept(&all, capacity, policy), "{probe}, warp {warp}");
                        assert_eq!(unit.taken, Some(rounds), "{probe}, warp {warp}");
                        let others = rest.iter().flatten().count();
                        assert_eq!(others, rest.len().min(unit.by_others as usize));
                        assert!(rest.iter().flatten().all(|record| all.contains(record)));
                        assert!(!is_plain || others == 0, "{probe}: no lane has parted from lane 0");
                    }
                }
            }
        }
    }
}

/// Thread i of the launch goes round (7·i + 3) mod 11 times, i being counted within its block.
const EACH_ITS_OWN: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<20>;
	mov.u32 %r1, %tid.z;
	mov.u32 %r2, %ntid.y;
	mov.u32 %r3, %tid.y;
	mad.lo.s32 %r1, %r1, %r2, %r3;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r1, %r1, %r2, %r3;
	mad.lo.s32 %r4, %r1, 7, 3;
	rem.u32 %r4, %r4, 11;
	mov.u32 %r5, 0;
	setp.eq.u32 %p1, %r4, 0;
	@%p1 bra $L_end;
$L_round:
	add.u32 %r5, %r5, 1;
	setp.lt.u32 %p2, %r5, %r4;
	@%p2 bra $L_round;
$L_end:
	ret;
}
";

#[test]
fn threads_count_for_themselves() {
    for (capacity, policy) in [(1, "drop"), (1, "wrap"), (4, "drop"), (4, "wrap"), (6, "wrap"), (16, "drop")]
    {
        let probe = format!(
            "map m: array<thread>[{capacity}] {policy} {{ round: u32, t: u64, odd: bool }}
         state n: u32;
         ptx:\"add.u32\" {{ m.save(n, thread, n & 1 == 1); n += 1; }}"
        );
        for (grid, block) in SHAPES {
            let case = Case { ptx: EACH_ITS_OWN, probe: probe.clone(), grid, block, buffer: vec![0] };
            let units = case.units("m");
            assert_eq!(units.len() as u64, case.blocks() * case.threads());
            for (thread, unit) in (0u64..).zip(units) {
                let rounds = (thread % case.threads() * 7 + 3) % 11;
                let all: Vec<Record> = (0..rounds).map(|round| vec![round, thread, round & 1]).collect();
                let places = kept(&all, capacity, policy);
                let taken = Some(rounds as u32);
                assert_eq!(unit, Unit { taken, by_others: 0, places }, "{probe}, thread {thread}");
            }
        }
    }
}

#[test]
fn what_is_not_saved_is_not_counted() {
    // Every third round, and every third of those of odd threads.
    let probe = "map m: array<thread>[3] wrap { round: u32 }
         map o: array<thread>[2] drop { round: u32 }
         state n: u32;
         ptx:\"add.u32\" {
             if n % 3 == 0 { m.save(n); }
             n += 1;
         }
         ptx:\"add.u32\" /n % 3 == 1 && thread & 1 == 1/ { o.save(n); }";
    let case =
        Case { ptx: EACH_ITS_OWN, probe: probe.into(), grid: [2, 1, 1], block: [40, 1, 1], buffer: vec![0] };
    let (m, o) = (case.units("m"), case.units("o"));
    for thread in 0..80u64 {
        let rounds = (thread % 40 * 7 + 3) % 11;
        let of_m: Vec<Record> = (0..rounds).filter(|n| n % 3 == 0).map(|n| vec![n]).collect();
        // The second probe sees n as the first has left it.
        let of_o: Vec<Record> =
            (1..=rounds).filter(|n| n % 3 == 1 && thread & 1 == 1).map(|n| vec![n]).collect();
        let unit = |all: &[Record], capacity, policy| Unit {
            taken: Some(all.len() as u32),
            by_others: 0,
            places: kept(all, capacity, policy),
        };
        assert_eq!(m[thread as usize], unit(&of_m, 3, "wrap"), "thread {thread}");
        assert_eq!(o[thread as usize], unit(&of_o, 2, "drop"), "thread {thread}");
    }
}

/// Lanes below 16 come to line 10, of which those below 8 leave; the others come to line 11 and leave. Lanes from 16 on come
/// to lines 20, 21 and 22, of which those from 28 on leave before line 22, and the others at the closing brace.
const ARMS: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<6>;
	.reg .b32 %r<9>;
	mov.u32 %r1, %laneid;
	mov.u32 %r2, 0;
	setp.ge.u32 %p1, %r1, 16;
	setp.lt.u32 %p2, %r1, 8;
	setp.lt.u32 %p3, %r1, 28;
	@%p1 bra $L_high;
	.loc 1 10 0
	add.u32 %r2, %r2, 1;
	@%p2 ret;
	.loc 1 11 0
	add.u32 %r2, %r2, 1;
	exit;
$L_high:
	.loc 1 20 0
	add.u32 %r2, %r2, 1;
	.loc 1 21 0
	add.u32 %r2, %r2, 1;
	@!%p3 exit;
	.loc 1 22 0
	add.u32 %r2, %r2, 1;
}
";

/// Of [`ARMS`] in a warp of so many lanes, the lines that groups come to, and the lanes of each.
fn groups(lanes: u32) -> Vec<(u64, u64)> {
    let mask = |from: u32, to: u32| (from..to.min(lanes)).fold(0u64, |mask, lane| mask | 1 << lane);
    let all = [(10, 0, 16), (11, 8, 16), (20, 16, 32), (21, 16, 32), (22, 16, 28)];
    all.into_iter().map(|(line, from, to)| (line, mask(from, to))).filter(|(_, mask)| *mask != 0).collect()
}

/// How often each of these is among the places.
fn counted(places: &[Option<Record>]) -> BTreeMap<Record, usize> {
    let mut counted = BTreeMap::new();
    for record in places.iter().flatten() {
        *counted.entry(record.clone()).or_default() += 1;
    }
    counted
}

#[test]
fn lanes_that_have_parted_from_lane_0_share_places() {
    for (capacity, policy) in [(1, "drop"), (1, "wrap"), (4, "drop"), (4, "wrap"), (8, "wrap"), (40, "drop")]
    {
        let probe = format!(
            "map m: array<warp>[{capacity}] {policy} {{ line: u32, mask: u64, w: u64 }}
         warp ptx:\"add.u32\" {{ m.save(line, active(), warp); }}"
        );
        let case = Case { ptx: ARMS, probe, grid: [2, 1, 1], block: [32 + 20, 1, 1], buffer: vec![0] };
        for done in case.run() {
            for (warp, unit) in (0u64..).zip(done.units(done.plain(), "m")) {
                let groups = groups(if warp % 2 == 0 { 32 } else { 20 });
                let record = |&(line, mask): &(u64, u64)| vec![line, mask, warp];
                let (own, rest) = unit.places.split_at(capacity);
                assert_eq!(own, kept(&[record(&groups[0])], capacity, policy), "{}", case.probe);
                assert_eq!(unit.taken, Some(1), "{}", case.probe);
                let others: Vec<Record> = groups[1..].iter().map(record).collect();
                assert_eq!(unit.by_others as usize, others.len(), "{}, warp {warp}", case.probe);
                assert_eq!(rest.len(), capacity / 4 + 1);
                let stored = counted(rest);
                assert_eq!(stored.values().sum::<usize>(), others.len().min(rest.len()));
                // In which order they came is nobody's to say, but that no place has two.
                for (record, count) in stored {
                    assert_eq!(count, 1, "{record:?}");
                    assert!(others.contains(&record), "{}: {record:?} of {others:?}", case.probe);
                }
            }
        }
    }
}

#[test]
fn every_way_out_stores_the_count() {
    // Of each thread how often it came to an addition, in ARMS.
    let case = Case {
        ptx: ARMS,
        probe: "map m: array<thread>[2] wrap { line: u32 } ptx:\"add.u32\" { m.save(line); }".into(),
        grid: [1, 1, 2],
        block: [13, 5, 1],
        buffer: vec![0],
    };
    for (thread, unit) in (0u64..).zip(case.units("m")) {
        let lines: &[u64] = match thread % 65 % 32 {
            0..8 => &[10],
            8..16 => &[10, 11],
            16..28 => &[20, 21, 22],
            _ => &[20, 21],
        };
        let all: Vec<Record> = lines.iter().map(|&line| vec![line]).collect();
        let places = kept(&all, 2, "wrap");
        assert_eq!(unit, Unit { taken: Some(all.len() as u32), by_others: 0, places }, "thread {thread}");
    }
}

#[test]
fn saves_at_entries_and_exits_are_counted() {
    let probe = "map m: array<warp>[6] drop { kind: u32, mask: u64 }
         map t: array<thread>[4] drop { kind: u32 }
         warp kernel:entry { m.save(1, active()); m.save(2, active()); }
         warp kernel:exit { m.save(3, active()); }
         kernel:entry, kernel:exit { t.save(7); }
         kernel:exit /lane & 1 == 0/ { t.save(8); }";
    let case = Case { ptx: ARMS, probe: probe.into(), grid: [2, 1, 1], block: [32, 1, 1], buffer: vec![0] };
    for done in case.run() {
        for ran in &done.runs {
            for unit in done.units(done.plain(), "m") {
                // Lanes 0 to 7, 8 to 15, 28 to 31 and 16 to 27 leave together.
                let mut own = vec![vec![1, 0xffff_ffff], vec![2, 0xffff_ffff], vec![3, 0xff]];
                let others = [vec![3, 0xff00], vec![3, 0xf000_0000], vec![3, 0x0fff_0000]];
                assert_eq!((unit.taken, unit.by_others), (Some(3), 3));
                own.resize(6, Vec::new());
                let own: Vec<_> = own.into_iter().map(|one| (!one.is_empty()).then_some(one)).collect();
                assert_eq!(unit.places[..6], own);
                let rest = counted(&unit.places[6..]);
                assert_eq!(rest.len(), 2);
                assert!(rest.keys().all(|record| others.contains(record)), "{rest:?}");
            }
            for (thread, unit) in (0u64..).zip(done.units(ran, "t")) {
                let all: &[u64] = if thread % 2 == 0 { &[7, 7, 8] } else { &[7, 7] };
                let all: Vec<Record> = all.iter().map(|&kind| vec![kind]).collect();
                let taken = Some(all.len() as u32);
                assert_eq!(unit, Unit { taken, by_others: 0, places: kept(&all, 4, "drop") });
            }
        }
    }
}

#[test]
fn arrays_streams_tables_and_records_in_one_probe() {
    let probe = "map a: array<warp>[2] wrap { n: u32 }
         map b: array<warp>[3] drop { n: u32, twice: u64, half: u16 }
         map plain: array<warp> { n: u32 }
         map log: stream<warp> { n: u32 }
         map t: array<thread>[1] wrap { n: u32 }
         state n: u32;
         state summed: u64;
         warp ptx:\"add.u32\" {
             a.save(n);
             plain.save(n);
             log.save(n);
             if n & 1 == 1 { b.save(n, 2 * (n as u64), (n / 2) as u16); }
             b.save(n, n as u64, 9);
             @hits[warp] = count();
             n += 1;
         }
         ptx:\"add.u32\" { t.save(n); summed += 1; }
         kernel:exit { @all = sum(summed); }
         warp kernel:exit { a.save(1000); }";
    let case = Case { ptx: ROUNDS, probe: probe.into(), grid: [2, 1, 1], block: [40, 1, 1], buffer: vec![5] };
    for done in case.run() {
        for ran in &done.runs[..1] {
            let of_a: Vec<Record> = [0, 1, 2, 3, 4, 1000].map(|n| vec![n]).to_vec();
            let mut of_b: Vec<Record> = Vec::new();
            for n in 0..5 {
                if n % 2 == 1 {
                    of_b.push(vec![n, 2 * n, n / 2]);
                }
                of_b.push(vec![n, n, 9]);
            }
            let unit = |all: &[Record], capacity, policy| {
                let mut places = kept(all, capacity, policy);
                places.extend(none(1));
                Unit { taken: Some(all.len() as u32), by_others: 0, places }
            };
            assert_eq!(done.units(ran, "a"), vec![unit(&of_a, 2, "wrap"); 4]);
            assert_eq!(done.units(ran, "b"), vec![unit(&of_b, 3, "drop"); 4]);
            let last = Unit { taken: Some(5), by_others: 0, places: vec![Some(vec![5])] };
            assert_eq!(done.units(ran, "t"), vec![last; 80]);
            let plain = records::map(&done.woven, &done.job, ran, "plain").unwrap();
            assert_eq!(plain.all, vec![Some(vec![4]); 4]);
            let hits = records::table(&done.woven, &done.job, ran, "hits").unwrap();
            assert_eq!(hits.values().copied().collect::<Vec<_>>(), [2 * 5, 2 * 5]);
            let all = records::table(&done.woven, &done.job, ran, "all").unwrap();
            assert_eq!(all.values().sum::<u64>(), 5 * 80);
        }
    }
}

/// Lane l of a warp comes alone to line 10 + l mod 4, as lanes do that part at a switch; 4 groups of 8 lanes.
const SWITCH: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<6>;
	.reg .b32 %r<9>;
	mov.u32 %r1, %laneid;
	and.b32 %r2, %r1, 3;
	mov.u32 %r3, 0;
	setp.eq.u32 %p1, %r2, 1;
	@%p1 bra $L_1;
	setp.eq.u32 %p1, %r2, 2;
	@%p1 bra $L_2;
	setp.eq.u32 %p1, %r2, 3;
	@%p1 bra $L_3;
$L_0:
	.loc 1 10 0
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, 6;
	@%p2 bra $L_0;
	ret;
$L_1:
	.loc 1 11 0
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, 6;
	@%p2 bra $L_1;
	ret;
$L_2:
	.loc 1 12 0
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, 6;
	@%p2 bra $L_2;
	ret;
$L_3:
	.loc 1 13 0
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, 6;
	@%p2 bra $L_3;
	ret;
}
";

#[test]
fn groups_in_loops_beyond_what_there_is_room_for() {
    for policy in ["drop", "wrap"] {
        for capacity in [1, 4, 5, 64, 100] {
            let probe = format!(
                "map m: array<warp>[{capacity}] {policy} {{ n: u32, line: u32, mask: u64 }}
                 state n: u32;
                 warp ptx:\"add.u32\" {{ m.save(n, line, active()); n += 1; }}"
            );
            let case = Case { ptx: SWITCH, probe, grid: [1, 1, 1], block: [64, 1, 1], buffer: vec![0] };
            let mask = |group: u64| 0x1111_1111u64 << group;
            for done in case.run() {
                for unit in done.units(done.plain(), "m") {
                    let all: Vec<Record> = (0..6).map(|n| vec![n, 10, mask(0)]).collect();
                    assert_eq!((unit.taken, unit.by_others), (Some(6), 18), "{}", case.probe);
                    let (own, rest) = unit.places.split_at(capacity);
                    assert_eq!(own, kept(&all, capacity, policy), "{}", case.probe);
                    let stored = counted(rest);
                    assert_eq!(stored.len(), rest.len().min(18), "{}: each once", case.probe);
                    for record in stored.keys() {
                        let [n, line, lanes] = record[..] else { panic!("{record:?}") };
                        assert!(n < 6 && (11..=13).contains(&line), "{record:?}");
                        assert_eq!(lanes, mask(line - 10), "{record:?}");
                    }
                    // A place that is taken before another group came is not taken again, until all are.
                    let is_full = rest.iter().take(18).all(Option::is_some);
                    assert!(is_full, "{}: {rest:?}", case.probe);
                }
            }
        }
    }
}

#[test]
fn a_predicate_elects_among_those_in_which_it_holds() {
    // Lane 0 saves in even rounds, lane 1 in odd ones.
    let probe = "map m: array<warp>[3] wrap { n: u32, mask: u64 }
         state n: u32;
         warp ptx:\"add.u32\" /(lane + n) & 1 == 0/ { m.save(n, active()); }
         warp ptx:\"add.u32\" { n += 1; }";
    let case = Case { ptx: ROUNDS, probe: probe.into(), grid: [2, 1, 1], block: [32, 1, 1], buffer: vec![9] };
    let even: Vec<Record> = (0..9).step_by(2).map(|n| vec![n, 0x5555_5555]).collect();
    // One place for the others: the newest.
    let mut places = kept(&even, 3, "wrap");
    places.push(Some(vec![7, 0xaaaa_aaaa]));
    assert_eq!(case.plain_units("m"), vec![Unit { taken: Some(5), by_others: 4, places }; 2]);
}

/// Guarded instructions: of lane l, bit n of l says whether it stores in round n.
const GUARDED: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<6>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	mov.u32 %r2, 0;
	mov.u32 %r3, %laneid;
$L_round:
	shr.u32 %r4, %r3, %r2;
	and.b32 %r4, %r4, 1;
	setp.eq.u32 %p1, %r4, 1;
	@%p1 st.global.u32 [%rd1], %r2;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, 5;
	@%p2 bra $L_round;
	ret;
}
";

#[test]
fn guarded_sites_count_the_lanes_whose_guard_holds() {
    let probe = "map t: array<thread>[2] drop { n: u32 }
         map m: array<warp>[9] drop { n: u32, mask: u64 }
         state n: u32;
         inst:store.global { t.save(n); }
         warp inst:store.global { m.save(n, active()); }
         warp ptx:\"add.u32\" { n += 1; }";
    let case =
        Case { ptx: GUARDED, probe: probe.into(), grid: [1, 1, 1], block: [32, 1, 1], buffer: vec![0; 32] };
    for (lane, unit) in (0u64..).zip(case.units("t")) {
        let all: Vec<Record> = (0..5).filter(|n| lane >> n & 1 == 1).map(|n| vec![n]).collect();
        let taken = Some(all.len() as u32);
        assert_eq!(unit, Unit { taken, by_others: 0, places: kept(&all, 2, "drop") }, "lane {lane}");
    }
    // Never lane 0: bit n of the lane's number is set.
    let mask = |n: u64| (0..32u64).filter(|lane| lane >> n & 1 == 1).fold(0, |mask, lane| mask | 1 << lane);
    let rest: Vec<Option<Record>> = (0..3).map(|n| Some(vec![n, mask(n)])).collect();
    let places = [none(9), rest].concat();
    assert_eq!(case.plain_units("m"), [Unit { taken: Some(0), by_others: 5, places }]);
}

#[test]
fn however_a_warp_parts_each_lane_is_in_one_record() {
    // Room for all: no lane comes to an addition more than ten times, and no record is of no lane.
    let probe = "map m: array<warp>[2000] drop { n: u32, mask: u64 }
         state n: u32;
         warp ptx:\"add.u32\" { m.save(n, active()); n += 1; }";
    for ptx in [EACH_ITS_OWN, SWITCH] {
        let case = Case { ptx, probe: probe.into(), grid: [2, 1, 1], block: [50, 1, 1], buffer: vec![0] };
        for done in case.run() {
            for ran in &done.runs {
                for (warp, unit) in (0u64..).zip(done.units(ran, "m")) {
                    let (own, rest) = unit.places.split_at(2000);
                    assert_eq!(Some(own.iter().flatten().count()), unit.taken.map(|n| n as usize));
                    assert_eq!(rest.iter().flatten().count(), unit.by_others as usize);
                    // Lane 0 leads wherever it is, and no other lane writes to its places.
                    assert!(own.iter().flatten().all(|record| record[1] & 1 == 1));
                    assert!(rest.iter().flatten().all(|record| record[1] & 1 == 0));
                    let mut rounds = [0u64; 32];
                    for record in unit.places.iter().flatten() {
                        for (lane, rounds) in (0..).zip(&mut rounds) {
                            if record[1] >> lane & 1 == 1 {
                                *rounds += 1;
                            }
                        }
                    }
                    for (lane, rounds) in (0u64..).zip(rounds) {
                        let thread = warp % 2 * 32 + lane;
                        let expected = match (thread < 50, ptx == SWITCH) {
                            (false, _) => 0,
                            (true, true) => 6,
                            (true, false) => (thread * 7 + 3) % 11,
                        };
                        assert_eq!(rounds, expected, "warp {warp}, lane {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_bool_that_tells_that_its_record_is_there() {
    let probe = "map m: array<warp> { odd: bool } map t: array<thread> { yes: bool, no: bool, far: bool }
         warp kernel:exit { m.save(warp & 1 == 1); }
         kernel:exit { t.save(true, false, thread > 40); }";
    let case = Case { ptx: ROUNDS, probe: probe.into(), grid: [2, 1, 1], block: [40, 1, 1], buffer: vec![0] };
    for done in case.run() {
        for ran in &done.runs {
            let m = records::map(&done.woven, &done.job, ran, "m").unwrap();
            assert_eq!(m.all, (0..4).map(|warp| Some(vec![warp & 1])).collect::<Vec<_>>());
            let t = records::map(&done.woven, &done.job, ran, "t").unwrap();
            let far = |thread: u64| u64::from(thread > 40);
            assert_eq!(t.all, (0..80).map(|thread| Some(vec![1, 0, far(thread)])).collect::<Vec<_>>());
        }
    }
}

/// Thread i calls `f` of i mod 4, which calls itself as often; where i is above 19 `g` lets it leave from there.
const FUNCTIONS: &str = "
.func (.param .b32 f_r) f(.param .b32 f_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	ld.param.b32 %r1, [f_0];
	mov.u32 %r3, 7;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_end;
	sub.u32 %r2, %r1, 1;
	{
	.param .b32 a;
	.param .b32 b;
	st.param.b32 [a], %r2;
	call (b), f, (a);
	ld.param.b32 %r3, [b];
	}
	add.u32 %r3, %r3, 1;
$L_end:
	st.param.b32 [f_r], %r3;
	ret;
}
.func g(.param .b32 g_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	ld.param.b32 %r1, [g_0];
	setp.gt.u32 %p1, %r1, 19;
	@%p1 exit;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	mov.u32 %r1, %tid.x;
	and.b32 %r2, %r1, 3;
	{
	.param .b32 param0;
	.param .b32 retval0;
	st.param.b32 [param0], %r2;
	call.uni (retval0), f, (param0);
	ld.param.b32 %r3, [retval0];
	}
	{
	.param .b32 param1;
	st.param.b32 [param1], %r1;
	call.uni g, (param1);
	}
	mul.lo.u32 %r3, %r3, 3;
	ret;
}
";

#[test]
fn counts_go_into_functions_and_come_back() {
    for policy in ["drop", "wrap"] {
        // In each call but the innermost: what it was given; what came back to it; and in the kernel at last.
        let case = Case {
            ptx: FUNCTIONS,
            probe: format!(
                "map m: array<thread>[3] {policy} {{ value: u32 }}
                 ptx:\"sub.u32\", ptx:\"add.u32\", ptx:\"mul.lo.u32\" {{ m.save(in1 as u32); }}"
            ),
            grid: [2, 1, 1],
            block: [32, 1, 1],
            buffer: vec![0],
        };
        for (thread, unit) in (0u64..).zip(case.units("m")) {
            let thread = thread % 32;
            let depth = thread % 4;
            let down = (1..=depth).rev();
            let up = (0..depth).map(|back| 7 + back);
            let last = (thread <= 19).then_some(7 + depth);
            let all: Vec<Record> = down.chain(up).chain(last).map(|value| vec![value]).collect();
            let places = kept(&all, 3, policy);
            assert_eq!(unit, Unit { taken: Some(all.len() as u32), by_others: 0, places }, "thread {thread}");
        }
    }
}

/// Each warp comes to the barrier of line 7 as often as the buffer says, then to that of line 9.
const BARRIERS: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	ld.global.u32 %r1, [%rd1];
	mov.u32 %r2, 0;
$L_round:
	.loc 1 7 0
	bar.sync 0;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %r1;
	@%p2 bra $L_round;
	.loc 1 9 0
	barrier.sync 0;
	bar.warp.sync 0xffffffff;
	ret;
}
";

#[test]
fn last_waits_has_the_newest_sixteen() {
    let probe = nt_probe::SHIPPED.iter().find(|one| one.name == "last_waits").unwrap().text;
    for rounds in [1, 14, 15, 16, 40] {
        let case = Case {
            ptx: BARRIERS,
            probe: probe.into(),
            grid: [2, 1, 1],
            block: [96, 1, 1],
            buffer: vec![rounds],
        };
        for done in case.run() {
            for (warp, unit) in done.units(done.plain(), "waits").into_iter().enumerate() {
                let taken = rounds + 1;
                assert_eq!((unit.taken, unit.by_others), (Some(taken), 0), "warp {warp}");
                let (own, rest) = unit.places.split_at(16);
                assert_eq!(rest, none(5));
                let mut before = 0;
                for number in taken.saturating_sub(16)..taken {
                    let Some([arrived, wait, line]) = own[number as usize % 16].as_deref() else {
                        panic!("warp {warp} has no wait {number}");
                    };
                    assert_eq!(*line, if number < rounds { 7 } else { 9 }, "wait {number}");
                    assert!(before <= *arrived && 0 < *wait, "{before} {arrived} {wait}");
                    before = arrived + wait;
                }
                assert_eq!(own.iter().flatten().count(), 16.min(taken as usize));
            }
        }
    }
}
