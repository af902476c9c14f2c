//! What touches memory, and what waits for it.

use super::{check, known};
use nt_ptx::opcode::{Class, Completion, Trait};

#[test]
fn loads_and_stores() {
    // 9.7.9.8 ld
    check("ld.global.f32 d,[a];", "load global 32x1 4B [1] w0 r1");
    check("ld.shared.v4.b32 Q,[p];", "load shared 32x4 16B [1] w0 r1");
    check("ld.const.s32 d,[p+4];", "load const 32x1 4B [1] w0 r1");
    check("ld.local.b64 x,[240];", "load local 64x1 8B [1] w0 r1");
    check("ld.global.mmio.relaxed.sys.u32 %r3, [gbl];", "load global 32x1 4B [1] w0 r1");
    check("ld.shared::cluster.u32 %r3, [sh + 8];", "load cluster 32x1 4B [1] w0 r1");
    check("ld.b32 %r0, [%r1].unified;", "load generic 32x1 4B [1] w0 r1");
    check("ld.global.L2::cache_hint.b64 x, [p], cache-policy;", "load global 64x1 8B [1] w0 r1,2");
    check("ld.param::entry.b32 %rp1, [kparam1];", "load param 32x1 4B [1] w0 r1");
    check("ld.global.b128 %r0, [gbl];", "load global 128x1 16B [1] w0 r1");
    check("ld.global.L2::evict_last.v8.f32 {a,_,b,c,d,e,f,g}, [addr];", "load global 32x8 32B [1] w0 r1");
    check("ld.global.L2::evict_last.L1::evict_last.v4.u64 {a,b,c,d}, [p];", "load global 64x4 32B [1] w0 r1");
    // 9.7.9.9 ld.global.nc, 9.7.9.10 ldu
    check("ld.global.nc.v2.f32 d, [a];", "load global 32x2 8B [1] w0 r1");
    check("ldu.global.v4.f32 Q,[p];", "load global 32x4 16B [1] w0 r1");
    // 9.7.9.11 st
    check("st.global.f32 [a],b;", "store global 32x1 4B [0] d1 r0,1");
    check("st.global.v4.s32 [p],Q;", "store global 32x4 16B [0] d1 r0,1");
    check("st.local.b32 [q+-8],a;", "store local 32x1 4B [0] d1 r0,1");
    check("st.global.L2::cache_hint.b32 [a], b, policy;", "store global 32x1 4B [0] d1 r0,1,2");
    check("st.b16 [a],%r;", "store generic 16x1 2B [0] d1 r0,1");
    // 9.7.9.12 st.async, 9.7.9.13 st.bulk
    check(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [addr], {b0,b1,b2,b3}, [mbar];",
        "store cluster 32x4 16B [0] m[2] d1 r0,1,2",
    );
    check("st.async.release.sys.global.u32 [addr], b;", "store global 32x1 4B [0] d1 r0,1");
    check("st.bulk.weak.shared::cta [dst], n, 0;", "store shared B=1 [0] d2 r0,1,2");
    check("st.bulk [gdst], 4096, 0;", "store generic 4096B [0] d2 r0,1,2");
    // 9.7.9.14 multimem
    check("multimem.ld_reduce.and.b32 val1_b32, [addr1];", "load generic 32x1 4B [1] w0 r1");
    check("multimem.ld_reduce.add.acc::f32.v2.f16x2 {a, b}, [addr3];", "load generic 16x4 8B [1] w0 r1");
    check("multimem.st.release.cta.global.u32 [addr4], val_7;", "store global 32x1 4B [0] d1 r0,1");
    check("multimem.red.relaxed.gpu.max.f64 [addr6], val_8;", "reduce generic 64x1 8B [0] d1 r0,1");
    // 9.7.16.8 tcgen05.ld, tcgen05.st: as many registers as table 49 says
    check("tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [taddr1];", "load tensor 32x2 8B [1] w0 r1");
    check("tcgen05.ld.sync.aligned.16x128b.x4.b32 {a,b,c,d,e,f,g,h}, [t];", "load tensor 32x8 32B [1] w0 r1");
    check(
        "tcgen05.ld.red.sync.aligned.16x32bx2.x8.u32.max {a,b,c,d,e,f,g,h}, redVal, [taddr3], 16;",
        "load tensor 32x8 32B [2] w0,1 r2,3",
    );
    check(
        "tcgen05.st.sync.aligned.16x64b.x4.b32 [taddr0], {r0,r1,r2,r3};",
        "store tensor 32x4 16B [0] d1 r0,1",
    );
    check("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [t], 16, {r0};", "store tensor 32x1 4B [0] d2 r0,1,2");
    check("tcgen05.st.sync.aligned.16x256b.x1.b32 [t], {a,b,c,d};", "store tensor 32x4 16B [0] d1 r0,1");
}

/// PTX 9.1 to 9.5. What `fabric` instructions name by endpoint and offset has no address.
#[test]
fn memory_of_other_gpus() {
    check(
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [gmem], [smem], 16;",
        "bulk_copy global <- shared 16B [0] s[1] r0,1,2",
    );
    check("multimem.st.async.release.gpu.global.u32 [a], b;", "store global 32x1 4B [0] d1 r0,1");
    check("multimem.red.async.release.sys.global.add.u64 [a], b;", "reduce global 64x1 8B [0] d1 r0,1");
    check(
        "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys.b128 \
         [dst], [id, off], 256, [bar];",
        "bulk_copy shared <- global 256B s[0] m[3] r0,1,2,3",
    );
    check(
        "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128 \
         [id, off], [src], size, [bar];",
        "bulk_copy global <- shared B=2 s[1] m[3] r0,1,2,3",
    );
    check("fabric.wait.sync_restrict::read 1;", "wait r0");
    check("spcompress.b8.b4.sp::2:4.x1 {m}, {c}, {a, b}, s;", "convert w0,1 r2,3");
    check("mbarrier.check_layout.layout::v0.shared::cta.b64 p, [bar];", "mbarrier w0 r1");
}

/// A warp's lanes together move whole matrices: rows × columns × bits / 8 / 32 bytes each.
#[test]
fn matrices() {
    // 9.7.14.5.15: 8 × 8 × 2 bytes = 128, a matrix, 4 for each lane.
    check("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {d}, [addr];", "load shared 16x2 4B [1] w0 r1");
    check("ldmatrix.sync.aligned.m8n8.x4.b16 {d0, d1, d2, d3}, [addr];", "load generic 16x8 16B [1] w0 r1");
    // 16 × 16 bytes = 256, 8 for each lane; twice.
    check(
        "ldmatrix.sync.aligned.m16n16.x2.trans.shared::cta.b8 {a,b,c,d}, [p];",
        "load shared 8x16 16B [1] w0 r1",
    );
    // 8 rows of 16 elements, padded to 16 bytes each.
    check("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {a}, [p];", "load shared 8x4 4B [1] w0 r1");
    // 9.7.14.5.16
    check(
        "stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [p], {a, b};",
        "store shared 16x4 8B [0] d1 r0,1",
    );
    check("stmatrix.sync.aligned.m16n8.x4.trans.b8 [p], {a,b,c,d};", "store generic 8x16 16B [0] d1 r0,1");
    // 9.7.14.4.3: 32 × 16 bytes of u8 = 512, 16 for each lane; 16 × 16 × 4 = 1,024, 32 for each.
    check("wmma.load.a.sync.aligned.m32n8k16.row.u8 {a,b,c,d}, [p];", "load generic 8x16 16B [1] w0 r1");
    check(
        "wmma.load.b.sync.aligned.m16n16k16.row.f16 {a,b,c,d,e,f,g,h}, [p], s;",
        "load generic 16x8 16B [1] w0 r1,2",
    );
    check("wmma.load.c.sync.aligned.m16n16k16.col.f32 {c0}, [p];", "load generic 32x8 32B [1] w0 r1");
    check(
        "wmma.store.d.sync.aligned.m16n16k16.row.shared.f32 [p], {d0}, 64;",
        "store shared 32x8 32B [0] d1 r0,1,2",
    );
    // 8 × 128 bits = 128 bytes.
    check("wmma.load.a.sync.aligned.row.m8n8k128.b1 {a}, [p];", "load generic 1x32 4B [1] w0 r1");
    for text in
        ["ldmatrix.sync.aligned.m8n8.x1.b16 {d}, [a];", "wmma.store.d.sync.aligned.row.m8n8k4.f64 [p], {d};"]
    {
        assert!(known(text).traits.has(Trait::Matrix), "{text}");
    }
}

#[test]
fn atomics() {
    // 9.7.13.5 atom
    check("atom.global.add.s32 d,[a],1;", "atomic global 32x1 4B [1] d2 w0 r1,2");
    check("atom.shared::cta.max.u32 d,[x+4],0;", "atomic shared 32x1 4B [1] d2 w0 r1,2");
    check("atom.global.cas.b32 d,[p],my_val,my_new_val;", "atomic global 32x1 4B [1] d2,3 w0 r1,2,3");
    check("atom.global.acquire.sys.inc.u32 ans, [gbl], %r0;", "atomic global 32x1 4B [1] d2 w0 r1,2");
    check("atom.add.noftz.f16x2 d, [a], b;", "atomic generic 16x2 4B [1] d2 w0 r1,2");
    check(
        "atom.global.v8.f16.max.noftz {a,b,c,d,e,f,g,h}, [gbl], {A,B,C,D,E,F,G,H};",
        "atomic global 16x8 16B [1] d2 w0 r1,2",
    );
    check(
        "atom.global.v4.bf16x2.min.noftz {a,b,c,d}, [gbl], {e,f,g,h};",
        "atomic global 16x8 16B [1] d2 w0 r1,2",
    );
    check("atom.global.b128.exch %q0, [gbl], %q1;", "atomic global 128x1 16B [1] d2 w0 r1,2");
    check("atom.global.add.L2::cache_hint.s32 d, [a], 1, policy;", "atomic global 32x1 4B [1] d2 w0 r1,2,3");
    // 9.7.13.6 red, 9.7.13.7 red.async
    check("red.global.add.s32 [a],1;", "reduce global 32x1 4B [0] d1 r0,1");
    check("red.global.v4.f32.add [gbl], {%f0, %f1, %f2, %f3};", "reduce global 32x4 16B [0] d1 r0,1");
    check(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u32 [addr], b, [mbar];",
        "reduce cluster 32x1 4B [0] m[2] d1 r0,1,2",
    );
}

#[test]
fn copies() {
    // 9.7.9.25.3.1 cp.async
    check(
        "cp.async.ca.shared.global [shrd], [gbl + 4], 4;",
        "async_copy shared <- global 4B=2 [1] s[0] r0,1,2",
    );
    check("cp.async.cg.shared.global [%r2], [%r3], 16;", "async_copy shared <- global 16B=2 [1] s[0] r0,1,2");
    check(
        "cp.async.ca.shared.global [%r0], [%r1], 16, %r4;",
        "async_copy shared <- global 16B=2 of 3 [1] s[0] r0,1,2,3",
    );
    check(
        "cp.async.ca.shared.global.L2::cache_hint [%r2], [%r1], 4, cache-policy;",
        "async_copy shared <- global 4B=2 [1] s[0] r0,1,2,3",
    );
    check(
        "cp.async.cg.shared.global.L2::cache_hint [%r2], [%r1], 0x10, %r4, %rd1;",
        "async_copy shared <- global 16B=2 of 3 [1] s[0] r0,1,2,3,4",
    );
    // 9.7.9.25.4 cp.async.bulk
    check(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dstMem], [srcMem], size, [mbar];",
        "bulk_copy cluster <- global B=2 [1] s[0] m[3] r0,1,2,3",
    );
    check(
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 4096, [%r2];",
        "bulk_copy shared <- global 4096B [1] s[0] m[3] r0,1,2,3",
    );
    check(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dstMem], [srcMem], size, [mbar];",
        "bulk_copy cluster <- shared B=2 s[1] m[3] r0,1,2,3",
    );
    check(
        "cp.async.bulk.global.shared::cta.bulk_group [dstMem], [srcMem], size;",
        "bulk_copy global <- shared B=2 [0] s[1] r0,1,2",
    );
    check(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32 [dstMem], [srcMem], size;",
        "bulk_copy global <- shared B=2 [0] s[1] r0,1,2",
    );
    check("cp.async.bulk.prefetch.L2.global [srcMem], size;", "prefetch global B=1 [0] r0,1");
    // 9.7.9.25.5: the tensor's place is coordinates, not an address
    check(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.tile [sMem0], [tensorMap0, {tc0}], [mbar0];",
        "tensor_copy cluster <- global s[0] m[2] d1 r0,1,2",
    );
    check(
        "cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group [tensorMap4, {a, b, c, d, e}], [sMem4];",
        "tensor_copy global <- shared s[1] d0 r0,1",
    );
    check(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.tile.bulk_group [tensorMap1, {tc0, tc1}], [sMem1], policy;",
        "tensor_copy global <- shared s[1] d0 r0,1,2",
    );
    check("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [tensorMap0, {tc0}];", "prefetch global d0 r0");
    // 9.7.16.9.2: 128 rows of 256 bits = 4,096 bytes
    check("tcgen05.cp.cta_group::1.128x256b [taddr0], s-desc0;", "tensor_copy tensor <- shared 4096B r0,1");
    check("tcgen05.cp.cta_group::2.4x256b [taddr0], s;", "tensor_copy tensor <- shared 128B r0,1");
    // 9.7.13.16
    check(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gbl], [sMem], 128;",
        "fence global <- shared 128B [0] s[1] r0,1,2",
    );
}

#[test]
fn hints_and_other_memory() {
    // 9.7.9.15 to 9.7.9.18
    check("prefetch.global.L1 [ptr];", "prefetch global [0] r0");
    check("prefetch.const.tensormap [ptr];", "prefetch const [0] r0");
    // No manual of ours has it: as ptxas takes it.
    check("tensormap.query.alloc_class_large.global.b1024 p, [ptr];", "other global [1] w0 r1");
    check("prefetchu.L1 [addr];", "prefetch generic [0] r0");
    check("applypriority.global.L2::evict_normal [ptr], 128;", "prefetch global 128B [0] r0,1");
    check("discard.global.L2 [ptr], 128;", "prefetch global 128B [0] r0,1");
    check("createpolicy.fractional.L2::evict_last.b64 policy, 1.0;", "other w0 r1");
    // 9.7.10, 9.7.11
    check("tex.3d.v4.s32.s32 {r1,r2,r3,r4}, [tex_a,{f1,f2,f3,f4}];", "texture 32x4 w0 r1");
    check("tex.1d.v2.f16x2.s32 {h1,h2}, [tex_a, smpl, {f1}];", "texture 16x4 w0 r1");
    check("txq.width.b32 %r1, [tex_A];", "texture 32x1 w0 r1");
    check("suld.b.2d.v4.b32.trap {a,b,c,d}, [surf_A, {x,y}];", "texture 32x4 w0 r1");
    check("sust.b.1d.b32.trap [surf_B, {x}], r;", "texture 32x1 r0,1");
}

#[test]
fn barriers_and_waits() {
    // 9.7.13.1 to 9.7.13.3
    check("bar.sync 0;", "barrier r0");
    check("bar.red.popc.u32 r2, 3, p;", "barrier w0 r1,2");
    check("barrier.cta.red.and.aligned.pred r3, 1, 128, p;", "barrier w0 r1,2,3");
    check("bar.warp.sync 0xffffffff;", "barrier r0");
    check("barrier.cluster.arrive.release.aligned;", "barrier");
    // 9.7.13.15
    check("mbarrier.init.shared::cta.b64 [shMem], 12;", "mbarrier shared [0] r0,1");
    check(
        "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [bar], tx;",
        "mbarrier cluster B=1 [0] r0,1",
    );
    check("mbarrier.arrive.shared.b64 %r0, [shMem];", "mbarrier shared [1] w0 r1");
    check("mbarrier.arrive.release.cluster.b64 _, [remoteAddr64], cnt;", "mbarrier generic [1] w0 r1,2");
    check(
        "mbarrier.arrive.expect_tx.release.cluster.b64 _, [remoteAddr64], 64;",
        "mbarrier generic 64B [1] w0 r1,2",
    );
    check("mbarrier.pending_count.b64 %r1, state;", "mbarrier w0 r1");
    check("cp.async.mbarrier.arrive.noinc.shared.b64 [shMem];", "mbarrier shared [0] r0");
    check("mbarrier.try_wait.parity.shared.b64 complete, [shMem], p, hint;", "wait shared [1] w0 r1,2,3");
    check(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mbar], mask;",
        "commit m[0] r0,1",
    );
    check(
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [addr], [mbar];",
        "other generic [0] m[1] r0,1",
    );

    let traits = |text: &str| {
        let facts = known(text);
        Trait::ALL.into_iter().filter(|one| facts.traits.has(*one)).map(Trait::name).collect::<Vec<_>>()
    };
    assert_eq!(traits("bar.arrive 0, 64;"), ["block", "arrive"]);
    assert_eq!(traits("barrier.cta.sync.aligned 0;"), ["block", "sync"]);
    assert_eq!(traits("bar.warp.sync m;"), ["warp", "sync"]);
    assert_eq!(traits("barrier.cluster.wait.acquire;"), ["cluster", "sync"]);
    assert_eq!(traits("mbarrier.init.b64 [a], 1;"), ["init"]);
    assert_eq!(traits("mbarrier.arrive.expect_tx.b64 s, [a], 1;"), ["arrive", "expect"]);
    assert_eq!(traits("@p bra.uni L;"), ["conditional", "uniform"]);
}

#[test]
fn what_is_not_there_at_once() {
    let completes = |text: &str| known(text).completes;
    assert_eq!(completes("ld.global.f32 d,[a];"), Completion::Here);
    assert_eq!(completes("cp.async.cg.shared.global [a], [b], 16;"), Completion::CopyGroup);
    assert_eq!(completes("cp.async.bulk.global.shared::cta.bulk_group [a], [b], c;"), Completion::BulkGroup);
    let bulk = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [b], c, [m];";
    assert_eq!(completes(bulk), Completion::Mbarrier);
    assert_eq!(completes("st.async.mbarrier::complete_tx::bytes.u32 [a], b, [m];"), Completion::Mbarrier);
    let wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {a,b,c,d}, x, y, p, 1, 1, 0, 0;";
    assert_eq!(completes(wgmma), Completion::MatrixGroup);
    assert_eq!(completes("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [t];"), Completion::TensorLoad);
    assert_eq!(completes("tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {r};"), Completion::TensorStore);
    assert_eq!(completes("tcgen05.mma.cta_group::1.kind::f16 [d], a, b, i, p;"), Completion::TensorCommit);

    // Each wait ends one of them, and what it ends is started by something.
    for (text, what) in [
        ("cp.async.wait_group 1;", Completion::CopyGroup),
        ("cp.async.wait_all;", Completion::CopyGroup),
        ("cp.async.bulk.wait_group.read 0;", Completion::BulkGroup),
        ("mbarrier.test_wait.shared.b64 p, [a], s;", Completion::Mbarrier),
        ("wgmma.wait_group.sync.aligned 0;", Completion::MatrixGroup),
        ("tcgen05.wait::ld.sync.aligned;", Completion::TensorLoad),
        ("tcgen05.wait::st.sync.aligned;", Completion::TensorStore),
        ("griddepcontrol.wait;", Completion::Grid),
    ] {
        assert_eq!((known(text).class, known(text).awaits), (Class::Wait, Some(what)), "{text}");
    }
    assert_eq!(known("bar.sync 0;").awaits, Some(Completion::Barrier));
    assert_eq!(known("bar.arrive 0, 64;").awaits, None);
}
