//! Who runs when: groups, guards, loops, early exits, barriers, waits, deadlocks, budgets; and that woven spans move none
//! of it.

use crate::common::{Device, fault, is_deadlock};
use nt_vgpu::{FaultKind, Launch, Memory};

const STORE: &str = "mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r1;";

/// What 32 lanes leave in `%r1`.
fn lanes(body: &str) -> Vec<u32> {
    Device::with_body(&format!("{body}\n{STORE}")).words(1, 32, 32).unwrap_or_else(|f| panic!("{body}: {f}"))
}

fn of(test: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(test).collect()
}

#[test]
fn a_group_is_the_lanes_that_stand_together() {
    assert_eq!(lanes("activemask.b32 %r1;"), of(|_| u32::MAX));
    // A guard leaves the others out.
    let guarded =
        "mov.u32 %r1, 5; setp.lt.u32 %p1, %i, 3; @%p1 activemask.b32 %r1; @!%p1 activemask.b32 %r1;";
    assert_eq!(lanes(guarded), of(|i| if i < 3 { 7 } else { !7 }));
    // Both arms of a branch, and where they join.
    let arms = "and.b32 %r2, %i, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; activemask.b32 %r1; bra J;
        E: activemask.b32 %r1; J: activemask.b32 %r3; xor.b32 %r1, %r1, %r3;";
    assert_eq!(lanes(arms), of(|i| if i % 2 == 0 { 0xaaaa_aaaa } else { 0x5555_5555 }));
}

#[test]
fn lanes_leave_a_loop_one_by_one_and_meet_behind_it() {
    let counted = "mov.u32 %r2, 0; mov.u32 %r1, 0;
        L: activemask.b32 %r3; popc.b32 %r4, %r3; add.u32 %r1, %r1, %r4; add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %i; @%p1 bra L; activemask.b32 %r3; popc.b32 %r4, %r3; mad.lo.u32 %r1, %r4, 1000, %r1;";
    // In round k the lanes from k on are there.
    assert_eq!(lanes(counted), of(|i| 32_000 + (0..=i).map(|k| 32 - k).sum::<u32>()));
}

#[test]
fn lanes_that_ended_are_not_there() {
    let mut device = Device::with_body(&format!(
        "setp.ge.u32 %p1, %i, 20; @%p1 exit; activemask.b32 %r1; bar.sync 0; vote.sync.ballot.b32 %r2, !%p1, 0xffffffff;
         xor.b32 %r1, %r1, %r2; add.u32 %r1, %r1, 1; {STORE}"
    ));
    let words = device.words(1, 48, 48).unwrap();
    assert_eq!(words[..20], [1; 20]);
    assert_eq!(words[20..], [0; 28]);
}

#[test]
fn recursion_is_by_lane() {
    // f(n) = n == 0 ? 0 : n + f(n - 1), to a depth that each lane has for itself.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n
        .func (.param .b32 r) f(.param .b32 n) { .reg .b32 %n, %v; .reg .pred %p; ld.param.u32 %n, [n];
          setp.eq.u32 %p, %n, 0; mov.u32 %v, 0; @%p bra D;
          { .param .b32 a; .param .b32 b; sub.u32 %v, %n, 1; st.param.b32 [a], %v; call (b), f, (a); ld.param.b32 %v, [b]; }
          add.u32 %v, %v, %n;
          D: st.param.b32 [r], %v; ret; }
        .visible .entry k(.param .u64 p) { .reg .b32 %r<4>, %i; .reg .b64 %rd1, %out; ld.param.u64 %out, [p]; mov.u32 %i, %tid.x;
          { .param .b32 a; .param .b32 b; st.param.b32 [a], %i; call.uni (b), f, (a); ld.param.b32 %r1, [b]; }
          mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r1; ret; }";
    for seed in [None, Some(1), Some(2)] {
        let mut device = Device::new(text);
        device.options.seed = seed;
        assert_eq!(device.words(1, 32, 32).unwrap(), of(|i| i * (i + 1) / 2));
    }
    let endless = text.replace("@%p bra D;", "");
    assert_eq!(fault(Device::new(&endless).words(1, 1, 1)).kind, FaultKind::Stack);
}

#[test]
fn lanes_wait_for_those_of_their_mask() {
    // Odd lanes come to another instruction, later, and all exchange.
    let exchange = "and.b32 %r2, %i, 1; setp.eq.u32 %p1, %r2, 1; mul.lo.u32 %r3, %i, 10; @%p1 bra O;
        shfl.sync.bfly.b32 %r1, %r3, 1, 31, 0xffffffff; bra J;
        O: shfl.sync.bfly.b32 %r1, %r3, 1, 31, 0xffffffff; J:";
    assert_eq!(lanes(exchange), of(|i| (i ^ 1) * 10));
    // Each half for itself.
    let halves = "setp.lt.u32 %p1, %i, 16; selp.b32 %r2, 0x0000ffff, 0xffff0000, %p1; redux.sync.add.u32 %r1, %i, %r2;";
    assert_eq!(lanes(halves), of(|i| if i < 16 { 120 } else { 376 }));
    let fault = fault(Device::with_body("vote.sync.any.pred %p1, %p2, 0xfffffffe;").words(1, 32, 1));
    assert!(matches!(fault.kind, FaultKind::Undefined(_)), "{fault}");
}

#[test]
fn barriers_hold_until_all_have_come() {
    // Each warp writes, all wait, each reads what its neighbour wrote; the lanes of a warp come apart.
    let body = format!(
        "and.b32 %r2, %i, 3; L: setp.eq.u32 %p1, %r2, 0; @%p1 bra D; sub.u32 %r2, %r2, 1; bra L; D:
         mov.u32 %r3, dynamic; shl.b32 %r4, %i, 2; add.u32 %r3, %r3, %r4; mul.lo.u32 %r5, %i, 3; st.shared.u32 [%r3], %r5;
         bar.sync 0; add.u32 %r6, %i, 32; rem.u32 %r6, %r6, 200; mov.u32 %r3, dynamic; mad.lo.u32 %r3, %r6, 4, %r3;
         ld.shared.u32 %r1, [%r3]; {STORE}"
    );
    for seed in [None, Some(7), Some(8), Some(9)] {
        let mut device = Device::with_body(&body);
        device.options.seed = seed;
        let want: Vec<u32> = (0..200).map(|i| (i + 32) % 200 * 3).collect();
        assert_eq!(device.words(1, 200, 200).unwrap(), want, "{seed:?}");
    }
}

#[test]
fn producers_arrive_and_consumers_wait() {
    let body = format!(
        "setp.lt.u32 %p1, %i, 32; mov.u32 %r3, dynamic; @%p1 bra P;
         bar.sync 1, 64; ld.shared.u32 %r1, [%r3]; {STORE} ret;
         P: mov.u32 %r1, 77; st.shared.u32 [%r3], %r1; bar.arrive 1, 64;"
    );
    let words = Device::with_body(&body).words(1, 64, 64).unwrap();
    assert_eq!(words[32..], [77; 32]);
    let odd = fault(Device::with_body("bar.sync 0, 33;").words(1, 64, 1));
    assert!(matches!(odd.kind, FaultKind::Undefined(_)), "{odd}");
}

#[test]
fn an_mbarrier_waits_for_arrivals_and_bytes() {
    let body = format!(
        "mov.u32 %r2, dynamic; setp.ne.u32 %p1, %i, 0; @%p1 bra W;
         mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r2], 64;
         W: bar.sync 0; setp.ne.u32 %p1, %i, 40; @%p1 bra T;
         add.u32 %r3, %r2, 64;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%out], 64, [%r2];
         T: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra T;
         and.b32 %r4, %i, 15; mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r1, [%r3+64]; add.u32 %r1, %r1, 1; {STORE}"
    );
    let mut device = Device::with_body(&body);
    assert_eq!(device.words(1, 64, 64).unwrap(), [1; 64]);
    // Nobody copies: who waits is told.
    let stuck = fault(Device::with_body(&body.replace("%i, 40", "%i, 99")).words(1, 64, 64));
    assert!(is_deadlock(&stuck) && stuck.opcode.starts_with("mbarrier.try_wait"), "{stuck}");
}

#[test]
fn a_lock_is_handed_on() {
    // Every lane takes a lock in turn, which a lane that runs ahead of the others must release.
    let body = "L: atom.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
        ld.global.u32 %r2, [%out+4]; add.u32 %r2, %r2, 1; st.global.u32 [%out+4], %r2; membar.gl; atom.global.exch.b32 %r3, [%out], 0;";
    for seed in [None, Some(3)] {
        let mut device = Device::with_body(body);
        device.options.seed = seed;
        assert_eq!(device.words(2, 64, 2).unwrap(), [0, 128]);
    }
}

#[test]
fn blocks_wait_for_each_other_in_cooperative_launches() {
    // All blocks count up, and wait until all have.
    let body = "atom.global.add.u32 %r1, [%out], 1; L: ld.volatile.global.u32 %r2, [%out]; setp.lt.u32 %p1, %r2, 24; @%p1 bra L;
        red.global.add.u32 [%out+4], 1;";
    let mut device = Device::with_body(body);
    device.options.max_steps = 1 << 20;
    let out = device.memory.allocate(8);
    let given = out.to_le_bytes();
    let launch = Launch { grid: [3, 1, 1], block: [8, 1, 1], params: &given, ..Launch::default() };
    let alone = fault(device.run("k", launch.clone()));
    assert_eq!(alone.kind, FaultKind::Steps(1 << 20));
    device.write_words(out, &[0, 0]);
    device.run("k", Launch { cooperative: true, ..launch }).unwrap();
    assert_eq!(device.memory.download(out)[4..], [24, 0, 0, 0]);
}

#[test]
fn blocks_of_a_cluster_read_each_other() {
    let body = "mov.u32 %r2, dynamic; mov.u32 %r3, %cluster_ctarank; add.u32 %r4, %r3, 100; st.shared.u32 [%r2], %r4;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; xor.b32 %r5, %r3, 1;
        mapa.shared::cluster.u32 %r6, %r2, %r5; ld.shared::cluster.u32 %r1, [%r6]; getctarank.shared::cluster.u32 %r7, %r6;
        mad.lo.u32 %r1, %r7, 1000, %r1; mov.u32 %i, %ctaid.x; barrier.cluster.arrive; barrier.cluster.wait;";
    let mut device = Device::with_body(&format!("{body} {STORE}"));
    let out = device.memory.allocate(16);
    let given = out.to_le_bytes();
    let launch =
        Launch { grid: [4, 1, 1], cluster: Some([2, 1, 1]), shared: 64, params: &given, ..Launch::default() };
    device.run("k", launch).unwrap();
    let want: Vec<u8> = [1101u32, 100, 1101, 100].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(device.memory.download(out), want);
}

#[test]
fn nothing_hangs() {
    let mut device = Device::with_body("L: bra L;");
    device.options.max_steps = 1000;
    let endless = fault(device.words(1, 1, 1));
    assert_eq!((endless.kind, endless.line), (FaultKind::Steps(1000), 8));
    // Half of a warp waits for the rest, which waits elsewhere.
    let crossed = "setp.lt.u32 %p1, %i, 16; @%p1 bra A; bar.warp.sync 0xffffffff; ret; A: bar.sync 0;";
    let crossed = fault(Device::with_body(crossed).words(1, 32, 1));
    assert!(is_deadlock(&crossed), "{crossed}");
}

#[test]
fn accesses_are_told_with_line_block_and_thread() {
    let mut device =
        Device::with_body("mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1;\nld.global.u32 %r1, [%rd1];");
    let beyond = fault(device.words(2, 48, 40));
    let text = beyond.to_string();
    assert_eq!((beyond.block, beyond.thread, beyond.line), ([0, 0, 0], [40, 0, 0], 9));
    assert!(
        text.contains(
            "kernel `k`, line 9, `ld.global.u32`: block (0,0,0), thread (40,0,0): no memory at global"
        ),
        "{text}"
    );
    for (body, what) in [
        ("ld.global.u32 %r1, [%out+2];", "misaligned global"),
        ("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+4];", "misaligned global"),
        ("mov.u32 %r1, dynamic; st.shared.u32 [%r1+4096], %r1;", "no memory at shared"),
        ("st.local.u32 [0], %r1;", "no memory at local"),
        ("cvta.param.u64 %rd1, p; st.u32 [%rd1], %r1;", "memory may be read only at param"),
        ("ld.const.u32 %r1, [16];", "no memory at const"),
        ("mov.u64 %rd1, 0; ld.u32 %r1, [%rd1];", "no memory at global"),
        ("trap;", "trapped"),
        ("mov.u32 %r1, %envreg3;", "not executed"),
        ("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [tx, {%r1}];", "not executed"),
        ("add.quickly.f32 %f1, %f2, %f3;", "not executed: `add` with `.quickly`"),
    ] {
        let text = fault(Device::with_body(body).words(1, 1, 16)).to_string();
        assert!(text.contains(what) && text.contains("line 8"), "{body}: {text}");
    }
}

/// A kernel full of races: warps add floats to one cell, and the last store wins.
const RACY: &str = "cvt.rn.f32.u32 %f1, %i; add.f32 %f1, %f1, 0f3DCCCCCD; rem.u32 %r2, %i, 7; add.u32 %r2, %r2, 1; mov.u32 %r5, %ctaid.x;
    L: red.global.add.f32 [%out], %f1; st.global.u32 [%out+4], %i; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra E;
    atom.global.exch.b32 %r1, [%out+8], %i; red.global.xor.b32 [%out+12], %r1; bra J;
    E: mul.f32 %f1, %f1, 0f3F8CCCCD; atom.global.add.f32 %f2, [%out+16], %f1; add.f32 %f1, %f1, %f2;
    J: sub.u32 %r2, %r2, 1; setp.gt.s32 %p2, %r2, 0; @%p2 bra L;
    bar.sync 0; atom.global.add.f32 %f3, [%out+20], %f1; setp.gt.u32 %p3, %i, 50; @%p3 ret; red.global.add.f32 [%out+24], %f3;";

/// What a weaver puts at every statement: a leader that branches around, and a save of its own.
fn woven(text: &str) -> String {
    let mut out = String::new();
    for (number, statement) in text.split_inclusive(';').enumerate() {
        let statement = statement.trim();
        let (label, rest) = match statement.split_once(": ") {
            Some((label, rest)) => (format!("{label}: "), rest),
            None => (String::new(), statement),
        };
        out.push_str(&format!(
            "{label}{{ .reg .pred %nt_p; .reg .b32 %nt_m, %nt_l; activemask.b32 %nt_m; mov.u32 %nt_l, %lanemask_lt; \
             and.b32 %nt_l, %nt_l, %nt_m; setp.eq.u32 %nt_p, %nt_l, 0; @!%nt_p bra nt_L{number}; \
             red.global.add.u32 [%out+64], %nt_m; nt_L{number}: }} {rest}\n"
        ));
    }
    out
}

#[test]
fn spans_move_nothing() {
    let plain = Device::with_body(RACY).words(3, 100, 16).unwrap();
    let probed = Device::with_body(&woven(RACY)).words(3, 100, 17).unwrap();
    assert_eq!(plain, probed[..16]);
    assert_ne!(probed[16], 0);
    assert!(plain[..7].iter().all(|&word| word != 0), "{plain:?}");
    // A shuffled schedule is another one: the kernel does have races.
    let mut device = Device::with_body(RACY);
    device.options.seed = Some(1);
    assert_ne!(plain, device.words(3, 100, 16).unwrap());
}

#[test]
fn counts_are_those_of_groups_lanes_and_bytes() {
    let device = Device::with_body(
        "setp.lt.u32 %p1, %i, 5;\n@%p1 ld.global.v2.u32 {%r1,%r2}, [%out];\n@!%p1 bra J;\nst.shared.u8 [dynamic], %r1;\nJ:",
    );
    let mut memory = nt_vgpu::Arena::new();
    let out = memory.allocate(8);
    let given = out.to_le_bytes();
    let launch =
        Launch { grid: [2, 1, 1], block: [40, 1, 1], shared: 16, params: &given, ..Launch::default() };
    let outcome = nt_vgpu::run(&device.program, "k", launch, &memory, device.options.clone()).unwrap();
    let of = |opcode: &str| {
        let at = device.program.places().iter().position(|place| &*place.opcode == opcode).expect(opcode);
        let count = outcome.stats.counts[at];
        assert!(count.groups <= count.groups_there && count.lanes <= count.lanes_there);
        (count.groups, count.lanes, count.bytes)
    };
    // Warps of 32 and 8 lanes, two blocks; lanes 0 to 4 of each first warp load.
    assert_eq!(of("setp.lt.u32"), (4, 80, [0; 5]));
    assert_eq!(of("ld.global.v2.u32"), (2, 10, [80, 0, 0, 0, 0]));
    assert_eq!(of("st.shared.u8"), (2, 10, [0, 10, 0, 0, 0]));
    assert_eq!(of("ld.param.u64"), (4, 80, [0, 0, 0, 0, 640]));
    // The branch is not taken by lanes 0 to 4 of each first warp, which come to it too; groups of 32 and 8.
    assert_eq!(of("bra"), (4, 70, [0; 5]));
    let bra = device.program.places().iter().position(|place| &*place.opcode == "bra").expect("a branch");
    let there = outcome.stats.counts[bra];
    assert_eq!((there.groups_there, there.lanes_there), (4, 80));
    assert_eq!(outcome.stats.threads, 80);
}

#[test]
fn clocks_go_on_on_an_sm() {
    let mut device = Device::with_body(
        "mov.u64 %rd2, %clock64; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %smid; shl.b32 %r2, %r2, 1; \
         mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %out, %rd1; cvt.u32.u64 %r4, %rd2; st.global.v2.u32 [%rd1], {%r3,%r4};",
    );
    device.options.sms = 2;
    let words = device.words(6, 1, 12).unwrap();
    let of_sm =
        |sm: u32| words.chunks(2).filter(|pair| pair[0] == sm).map(|pair| pair[1]).collect::<Vec<_>>();
    for clocks in [of_sm(0), of_sm(1)] {
        assert_eq!(clocks.len(), 3);
        assert!(clocks.is_sorted_by(|a, b| a < b), "{clocks:?}");
    }
}

#[test]
fn constants_and_tables_have_their_addresses() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 4 .u32 c[3] = {7, 8, 9};\n.global .u32 g = 5;
        .global .u64 t[3] = {g, generic(c), f};\n.func f() { ret; }
        .visible .entry k(.param .u64 p) { .reg .b32 %r<6>; .reg .b64 %rd<6>, %out; ld.param.u64 %out, [p];
          ld.global.u64 %rd1, [t]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%out], %r1;
          ld.global.u64 %rd1, [t+8]; ld.u32 %r1, [%rd1+4]; st.global.u32 [%out+4], %r1;
          ld.const.u32 %r1, [c+8]; st.global.u32 [%out+8], %r1; ld.global.u64 %rd1, [t+16]; call %rd1, P;
          P: .callprototype _ (); mov.u64 %rd2, c; cvta.const.u64 %rd2, %rd2; ld.u32 %r1, [%rd2]; st.global.u32 [%out+12], %r1; ret; }";
    let mut device = Device::new(text);
    assert_eq!(device.words(1, 1, 4).unwrap(), [5, 8, 9, 7]);
    let g = device.variable("g");
    device.memory.write(g, &[6]).unwrap();
    assert_eq!(device.words(1, 1, 4).unwrap()[0], 6);
}

/// As an H200 has it: parameters of kernels are in global memory too, constants are not.
#[test]
fn generic_addresses_know_their_space() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 g; .const .u32 c;\n
        .visible .entry k(.param .u64 p) { .reg .b64 %rd<3>, %a, %out; .reg .b32 %r<3>; .reg .pred %p; .shared .u32 s; .local .u32 l;
        ld.param.u64 %out, [p]; TESTS ret; }";
    let of = [
        ("global", "g", "global"),
        ("const", "c", "const"),
        ("shared", "s", "shared"),
        ("local", "l", "local"),
        ("param", "p", "global param"),
    ];
    for (space, variable, inside) in of {
        for asked in of.map(|(space, ..)| space) {
            let test = format!(
                "mov.u64 %a, {variable}; cvta.{space}.u64 %a, %a; isspacep.{asked} %p, %a; selp.u32 %r1, 1, 0, %p; \
                 st.global.u32 [%out], %r1;"
            );
            let mut device = Device::new(&text.replace("TESTS", &test));
            let is_inside = inside.split(' ').any(|one| one == asked);
            assert_eq!(device.words(1, 1, 1).unwrap(), [u32::from(is_inside)], "{space} is {asked}");
        }
    }
}

#[test]
fn functions_choose_among_their_parameters() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n
        .func (.param .b32 r) f(.param .b32 a, .param .b32 b) { .reg .b64 %x, %y; .reg .b32 %v; .reg .pred %p;
          ld.param.b32 %v, [a]; setp.gt.u32 %p, %v, 7; mov.b64 %x, a; mov.b64 %y, b; selp.b64 %x, %x, %y, %p;
          ld.param.b32 %v, [%x]; st.param.b32 [r], %v; ret; }
        .visible .entry k(.param .u64 p) { .reg .b32 %r<4>, %i; .reg .b64 %rd1, %out; ld.param.u64 %out, [p]; mov.u32 %i, %tid.x;
          { .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %i; st.param.b32 [b], 1000; call.uni (c), f, (a, b); ld.param.b32 %r1, [c]; }
          mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r1; ret; }";
    assert_eq!(Device::new(text).words(1, 32, 32).unwrap(), of(|i| if i > 7 { i } else { 1000 }));
}
