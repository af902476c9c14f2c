//! Summaries of made-up runs, word by word.

use super::*;
use nt_engine::{Conditions, Refusal};
use nt_wire::message::Bye;
use std::sync::Arc;
use std::time::Duration;

fn facts<'f>(entries: &'f Entries, counts: &'f Counts) -> Facts<'f> {
    Facts {
        command: "./app",
        folder: "trace.ntt",
        obstacle: None,
        choices: &[],
        nearest: &[],
        alive: 0,
        entries,
        counts,
        aggregations: "",
    }
}

/// A process that said hello and bye, and an image with a kernel that is selected.
fn met() -> Entries {
    let process = crate::ledger::Process { pid: 1, exe: "/app".to_owned(), bye: Some(Bye::default()) };
    Entries { processes: vec![process], seen: 1, selected: ["gemm".to_owned()].into(), ..Entries::default() }
}

fn launches(numbers: [u64; 3], reason: &str) -> Launches {
    let [launches, probed, collected] = numbers;
    let reasons =
        if reason.is_empty() { BTreeMap::new() } else { [(reason.to_owned(), launches - probed)].into() };
    Launches { launches, probed, collected, reasons }
}

fn probed(before: u32, after: u32, assembled: u32) -> Outcome {
    let of = |registers| Some(Resources { registers, ..Resources::default() });
    let cost = Cost { ours: Duration::from_micros(2400), assembler: Duration::from_millis(31), assembled };
    Outcome::Probed { resources: [of(before), of(after)], cost, assumes: Conditions::NONE }
}

fn refused(reason: &str) -> Outcome {
    Outcome::Refused(Arc::new(Refusal { reason: reason.to_owned(), bug: None }))
}

#[test]
fn a_run_that_went_well() {
    let mut entries = met();
    entries.selected.extend(["saxpy", "histogram"].map(str::to_owned));
    let key = |name: &str| (name.to_owned(), 90, Conditions::NONE);
    let reason = "it uses the module's .global variable `bins`";
    entries.kernels = [
        (key("gemm"), probed(32, 38, 2)),
        (key("saxpy"), probed(12, 16, 0)),
        (key("histogram"), refused(reason)),
    ]
    .into();
    let counts = Counts {
        kernels: [
            ("gemm".to_owned(), launches([23, 23, 23], "")),
            ("saxpy".to_owned(), launches([23, 20, 20], "3 captured into a graph")),
            ("histogram".to_owned(), launches([23, 0, 0], reason)),
            ("fill".to_owned(), launches([4, 0, 0], "not selected")),
        ]
        .into(),
        traces: vec!["1.1.ntt".to_owned()],
        bytes: 12_400,
        ..Counts::default()
    };
    let facts = Facts { aggregations: "@n: 7\n", ..facts(&entries, &counts) };
    assert_eq!(headline(&facts), "43 of 73 launches probed, 43 collected");
    assert_eq!(
        body(&facts),
        "  kernel     launches  probed  collected  registers  first launch\n\
        \x20 gemm             23      23         23   32 -> 38  2.4 ms, ptxas 31.0 ms\n\
        \x20 saxpy            23      20         20   12 -> 16  2.4 ms, ptxas from the cache; 3 captured into a graph\n\
        \x20 histogram        23       0          0             it uses the module's .global variable `bins`\n\
        \x20 1 other kernel was launched unprobed, 4 times: not selected\n\
        \x20 trace.ntt holds the trace of 1 process (12.1 KiB); next: nt-map report trace.ntt\n\
         \n@n: 7\n"
    );
}

/// Two twins, of which the first serves two shapes, and a shape for which there is none.
#[test]
fn a_kernel_of_several_shapes() {
    let mut entries = met();
    let key = |holds| ("gemm".to_owned(), 90, holds);
    let relying = |on, registers| match probed(32, registers, 2) {
        Outcome::Probed { resources, cost, .. } => Outcome::Probed { resources, cost, assumes: on },
        other => other,
    };
    let flat = Conditions::FLAT_GRID;
    entries.kernels = [
        (key(Conditions::NONE), relying(Conditions::NONE, 40)),
        (key(Conditions::FLAT_BLOCK), relying(Conditions::NONE, 40)),
        (key(flat), relying(flat, 36)),
        (key(Conditions::ALL), refused("ptxas refuses it")),
    ]
    .into();
    let kernels =
        [("gemm".to_owned(), launches([9, 7, 7], "2 of a shape that none of its twins is for"))].into();
    let counts = Counts { kernels, ..Counts::default() };
    assert_eq!(
        body(&facts(&entries, &counts)),
        "  kernel  launches  probed  collected    registers  first launch\n\
        \x20 gemm           9       7          7  32 -> 36-40  7.2 ms, ptxas 93.0 ms, for 2 shapes of launches; \
         ptxas refuses it; 2 of a shape that none of its twins is for\n"
    );
}

#[test]
fn nothing_is_told_with_its_reason() {
    let check = |facts: Facts<'_>, expected: &str| {
        assert_eq!(headline(&facts), format!("nothing was probed: {expected}"));
    };
    let (nobody, none) = (Entries::default(), Counts::default());
    check(facts(&nobody, &none), "no call of the CUDA driver was seen in ./app or its children");
    let obstacle = Some("is statically linked");
    check(Facts { obstacle, ..facts(&nobody, &none) }, "./app is statically linked");
    check(facts(&Entries { seen: 0, ..met() }, &none), "the CUDA driver was used, but no module was loaded");

    let unread = Entries {
        seen: 3,
        selected: BTreeSet::new(),
        images: [("no PTX: cubin for sm_90 only".to_owned(), 3)].into(),
        ..met()
    };
    check(facts(&unread, &none), "none of the 3 modules can be: no PTX: cubin for sm_90 only");
    let closed = Entries { seen: 4, closed: ["gemm".to_owned()].into(), ..unread.clone() };
    check(facts(&closed, &none), "no chosen kernel can be: no PTX: cubin for sm_90 only");
    let unselected = Entries { selected: BTreeSet::new(), ..met() };
    let (choices, near) = (["gem_".to_owned()], ["gemm".to_owned(), "gemv".to_owned()]);
    check(
        Facts { choices: &choices, nearest: &near, ..facts(&unselected, &none) },
        "no kernel matches `gem_`; the nearest: gemm, gemv",
    );
    check(facts(&met(), &none), "no kernel was launched");

    let counts =
        Counts { kernels: [("gemm".to_owned(), launches([5, 0, 0], "no"))].into(), ..Counts::default() };
    check(facts(&met(), &counts), "no");
    let mut entries = met();
    entries.kernels = [(("gemm".to_owned(), 90, Conditions::NONE), refused("line 7: expected `;`"))].into();
    check(facts(&entries, &counts), "line 7: expected `;`");
    entries.kernels.insert(("k".to_owned(), 90, Conditions::NONE), refused("0 sites"));
    check(facts(&entries, &counts), "0 sites (and another reason)");
}

/// Machine code alone is a row of the table, with its reason, and not one of those that nobody chose.
#[test]
fn kernels_without_ptx_have_their_rows() {
    let reason = "no PTX: cubin for sm_90 only";
    let entries = Entries { closed: ["gemm".to_owned()].into(), selected: [].into(), ..met() };
    let counts = Counts {
        kernels: [
            ("gemm".to_owned(), launches([2, 0, 0], reason)),
            ("fill".to_owned(), launches([4, 0, 0], "not selected")),
        ]
        .into(),
        ..Counts::default()
    };
    assert_eq!(
        body(&facts(&entries, &counts)),
        "  kernel  launches  probed  collected  registers  first launch\n\
        \x20 gemm           2       0          0             no PTX: cubin for sm_90 only\n\
        \x20 1 other kernel was launched unprobed, 4 times: not selected\n"
    );
}

#[test]
fn what_went_wrong_beside_is_noted() {
    let mut entries = met();
    entries.processes.push(crate::ledger::Process { pid: 2, ..Default::default() });
    entries.bugs = 2;
    entries.notes.push("odd".to_owned());
    let counts = Counts {
        notes: vec!["odd".to_owned(), "2 graph launches ran as they are".to_owned()],
        ..Counts::default()
    };
    let facts = facts(&entries, &counts);
    assert_eq!(
        notes(&facts),
        [
            "odd",
            "2 graph launches ran as they are",
            "1 process ended without a word (killed?): what was not collected by then is lost",
            "2 faults of nt's own were met: please report them with the bug-* folders in trace.ntt",
        ]
    );
}

#[test]
fn long_names_lose_their_middle() {
    assert_eq!(shorten("gemm", 5), "gemm");
    assert_eq!(shorten("abcdefghij", 5), "ab…ij");
    assert_eq!(bytes(1023), "1023 bytes");
    assert_eq!(bytes(1 << 30), "1.0 GiB");
}
