//! What is on the list, and what stays off it.

use super::*;

#[test]
fn what_is_on_the_list() {
    for opcode in [
        "mov.u32",
        "cvt.u64.u32",
        "mad.wide.u32",
        "setp.lt.and.u64",
        "ld.param.u64",
        "st.global.v4.b32",
        "bra",
        "activemask.b32",
        "div.u32",
        "div.full.f32",
        "and.pred",
        "setp.ge.u64",
        "st.global.u8",
        "ld.const.b64",
        "red.global.add.u64",
        "red.relaxed.gpu.global.add.u32",
        "redux.sync.add.u32",
        "vote.sync.ballot.b32",
        "match.any.sync.b64",
        "shfl.sync.idx.b32",
        "ld.u32",
        "isspacep.shared::cluster",
        "isspacep.param",
    ] {
        assert!(!forms(opcode).is_empty(), "{opcode}");
    }
}

#[test]
fn what_is_not() {
    for opcode in [
        "add.cc.u32",
        "addc.u32",
        "subc.u32",
        "madc.lo.cc.u32",
        "div.u64",
        "div.s64",
        "div.u16",
        "rem.s16",
        "rem.u64",
        "rem.s64",
        "div.rn.f32",
        "div.rn.f64",
        "sqrt.rn.f32",
        "sqrt.rn.f64",
        "rcp.rn.f64",
        "call",
        "call.uni",
        "ret",
        "exit",
        "trap",
        "brkpt",
        "bar.sync",
        "barrier.sync",
        "barrier.cta.sync.aligned",
        "membar.gl",
        "fence.acq_rel.gpu",
        "fence.proxy.async",
        "st.shared.u32",
        "st.local.u32",
        "st.param.b8",
        "st.param.v2.b32",
        "st.u32",
        "st.volatile.global.u32",
        "st.release.gpu.global.u32",
        "st.global.wt.u32",
        "st.async.u32",
        "ld.global.nc.u32",
        "ld.global.v4.u64",
        "ld.volatile.global.u32",
        "ld.relaxed.gpu.global.u32",
        "ld.local.u32",
        "ld.param.v2.u64",
        "ld.param::func.u32",
        "atom.global.add.s32",
        "ld.const.u32",
        "ld.volatile.const.u64",
        "red.add.u64",
        "red.shared.add.u64",
        "red.global.min.u64",
        "red.global.add.f32",
        "red.global.add.s64",
        "red.release.gpu.global.add.u64",
        "red.relaxed.sys.global.add.u64",
        "red.global.add.noftz.f16x2",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
        "multimem.red.relaxed.gpu.global.add.u32",
        "redux.sync.add.f32",
        "redux.sync.min.abs.f32",
        "vote.sync.any.b32",
        "match.all.sync.b32",
        "cp.async.ca.shared.global",
        "mbarrier.init.b64",
        "setmaxnreg.dec.sync.aligned.u32",
        "elect.sync",
        "vote.ballot.b32",
        "shfl.idx.b32",
        "activemask",
        "bra.uni",
        "brx.idx",
        "cvta.param.u64",
        "cvta.to.global.u64",
        "st.global.v8.b32",
        "st.global.v4.b64",
        "mov",
        "mov.b128",
        "mov.u32.u32",
        "add",
        "nanosleep.u32",
        "prefetch.global.L1",
        "tex.2d.v4.f32.s32",
        "cvt.sat.u8.u32",
        "",
        ".",
        "mov.",
        "pmevent",
        "griddepcontrol.wait",
        "alloca.u32",
    ] {
        assert!(forms(opcode).is_empty(), "{opcode}");
    }
}

#[test]
fn widths_of_a_form() {
    let first = |opcode| *forms(opcode).first().expect("is on the list");
    let wide = first("mad.wide.u32");
    assert_eq!((wide.bits(Wide), wide.bits(Last)), (64, 32));
    let cvt = first("cvt.u64.u32");
    assert_eq!((cvt.bits(Before), cvt.bits(Last), cvt.act), (64, 32, Act::ZeroExtend));
    let store = first("st.global.v4.f32");
    assert_eq!((store.lanes, store.last), (4, 32));
    // The second line of the list is not taken for a conversion that the first one names.
    assert_eq!(first("cvt.s64.s32").act, Act::Other);
}

#[test]
fn every_pattern_ends_in_a_type_or_is_bare() {
    for (pattern, slots, _) in FORMS {
        let typed = pattern.rsplit('.').next().unwrap_or("").split('|').all(|word| bits(word) > 0);
        assert!(typed || !slots.iter().any(|s| matches!(s, To(Last) | From(Last))), "{pattern}");
    }
}
