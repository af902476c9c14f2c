//! What computes, multiplies matrices, or turns control.

use super::{check, known};
use nt_ptx::opcode::Type;

#[test]
fn what_computes() {
    let typed = |text: &str| {
        let facts = known(text);
        let name = |ty: Option<Type>| ty.map_or("-", |ty| ty.name);
        format!(
            "{} {} -> {} {}x{}",
            facts.class.name(),
            name(facts.ty),
            name(facts.out_ty),
            facts.width,
            facts.elems
        )
    };
    // 9.7.1.1, 9.7.1.3 ("mul.wide: d is twice as wide"), 9.7.1.14
    assert_eq!(typed("add.u32 x,y,z;"), "int u32 -> u32 32x1");
    assert_eq!(typed("add.s16x2 a,b,c;"), "int s16x2 -> s16x2 16x2");
    assert_eq!(typed("mul.wide.s16 fa,fxs,fys;"), "int s16 -> s32 16x1");
    assert_eq!(typed("mad.wide.u32 a,b,c,d;"), "int u32 -> u64 32x1");
    assert_eq!(typed("mul.lo.s32 a,b,c;"), "int s32 -> s32 32x1");
    assert_eq!(typed("popc.b64 cnt, X;"), "int b64 -> u32 64x1");
    assert_eq!(typed("add.cc.u32 x1,y1,z1;"), "int u32 -> u32 32x1");
    // 9.7.3, 9.7.4, 9.7.5
    assert_eq!(typed("fma.rn.ftz.f32 w,x,y,z;"), "float f32 -> f32 32x1");
    assert_eq!(typed("add.rn.f32x2 d,a,b;"), "float f32x2 -> f32x2 32x2");
    assert_eq!(typed("add.f16x2 p0,q0,r0;"), "float f16x2 -> f16x2 16x2");
    assert_eq!(typed("add.rn.f32.bf16 d,a,c;"), "float bf16 -> f32 16x1");
    assert_eq!(typed("ex2.approx.ftz.f32 xa,a;"), "sfu f32 -> f32 32x1");
    assert_eq!(typed("tanh.approx.bf16x2 a,b;"), "sfu bf16x2 -> bf16x2 16x2");
    assert_eq!(typed("rcp.approx.ftz.f64 a,b;"), "sfu f64 -> f64 64x1");
    // 9.7.6, 9.7.8
    assert_eq!(typed("setp.lt.and.s32 p|q,a,b,r;"), "compare s32 -> pred 32x1");
    assert_eq!(typed("set.lt.and.f32.s32 d,a,b,r;"), "compare s32 -> f32 32x1");
    assert_eq!(typed("selp.s32 r0,r,g,p;"), "compare s32 -> s32 32x1");
    assert_eq!(typed("slct.u64.f32 A,B,C,fval;"), "compare f32 -> u64 32x1");
    assert_eq!(typed("testp.notanumber.f32 isnan,f0;"), "compare f32 -> pred 32x1");
    assert_eq!(typed("and.pred p,q,r;"), "logic pred -> pred 1x1");
    assert_eq!(typed("shf.l.clamp.b32 r4,r0,r1,16;"), "logic b32 -> b32 32x1");
    // 9.7.9.3, 9.7.9.6, 9.7.9.19 to 9.7.9.22
    assert_eq!(typed("mov.b64 {lo,hi}, %x;"), "move b64 -> b64 64x1");
    assert_eq!(typed("shfl.sync.up.b32 Ry|p, Rx, 0x1, 0x0, 0xffffffff;"), "shuffle b32 -> b32 32x1");
    assert_eq!(typed("isspacep.global isglbl, gptr;"), "compare - -> pred 0x0");
    assert_eq!(typed("cvta.to.local.u32 p,gptr;"), "convert u32 -> u32 32x1");
    assert_eq!(typed("cvt.rni.s32.f32 r,x;"), "convert f32 -> s32 32x1");
    assert_eq!(typed("cvt.rn.f16x2.f32 b1, f, f1;"), "convert f32 -> f16x2 16x2");
    assert_eq!(typed("cvt.f32.bf16 a, b;"), "convert bf16 -> f32 32x1");
    // 9.7.13
    assert_eq!(typed("vote.sync.ballot.b32 r1,p,0xffffffff;"), "vote b32 -> b32 32x1");
    assert_eq!(typed("vote.sync.all.pred p,q,m;"), "vote pred -> pred 1x1");
    assert_eq!(typed("match.any.sync.b64 d, a, 0xffffffff;"), "vote b64 -> b32 64x1");
    assert_eq!(typed("redux.sync.add.s32 dst, src, 0xffffffff;"), "vote s32 -> s32 32x1");
    assert_eq!(typed("activemask.b32 %r1;"), "vote b32 -> b32 32x1");
    assert_eq!(typed("atom.global.add.f32 d, [a], b;"), "atomic f32 -> f32 32x1");

    // What is written: both halves of a pair, the whole vector; the rest is read.
    check("setp.lt.and.s32 p|q,a,b,r;", "compare 32x1 w0 r1,2,3");
    check("lop3.or.b32 d|p, a, b, c, 0x3f, q;", "logic 32x1 w0 r1,2,3,4,5");
    check("elect.sync d|p, 0xffffffff;", "vote w0 r1");
    check("match.all.sync.b32 d|p, a, m;", "vote 32x1 w0 r1,2");
    check("mad.lo.s32 d,a,b,c;", "int 32x1 w0 r1,2,3");
    check("activemask.b32 %r1;", "vote 32x1 w0");
    check("stacksave.u64 rd;", "other w0");
    check("stackrestore.u64 rd;", "other r0");
    check("nanosleep.u32 42;", "sleep r0");
    check("setmaxnreg.dec.sync.aligned.u32 64;", "other r0");
    check(
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, handle;",
        "other w0 r1",
    );
}

#[test]
fn control() {
    let line = |text: &str| {
        let facts = known(text);
        format!("{}{}", facts.class.name(), if facts.falls_through { "" } else { " leaves" })
    };
    // 9.7.12; what lanes may take apart is a split.
    assert_eq!(line("bra L_exit;"), "branch leaves");
    assert_eq!(line("bra.uni L_exit;"), "branch leaves");
    assert_eq!(line("@q bra L23;"), "split");
    assert_eq!(line("@q bra.uni L23;"), "branch");
    assert_eq!(line("@p brx.idx %r0, ts;"), "split");
    assert_eq!(line("brx.idx.uni %r0, ts;"), "branch leaves");
    assert_eq!(line("ret;"), "exit leaves");
    assert_eq!(line("@p ret;"), "exit");
    assert_eq!(line("exit;"), "exit leaves");
    assert_eq!(line("trap;"), "other leaves");
    assert_eq!(line("@p trap;"), "other");
    assert_eq!(line("call init;"), "call");
    check("bra L;", "branch");
    check("brx.idx %r0, ts;", "split r0");
    // 9.7.12.5: the return list is written, function and arguments are read, a prototype is neither.
    check("call init;", "call r0");
    check("call (fretval), foo, (x, y);", "call w0 r1,2");
    check("call.uni g, (a);", "call r0,1");
    check("call (retval), %r0, (x, y), fproto;", "call w0 r1,2");
    check("call %r0, fproto;", "call r0");
}

/// m·n·k for each warp; `wgmma` is done by four (9.7.15.1), and `mma.m8n8k4` with halves is four products (9.7.14.5.1).
#[test]
fn multiply_adds() {
    let macs = |text: &str| (known(text).macs, known(text).ty.map(|ty| ty.name));
    let mma =
        |shape: &str, types: &str| macs(&format!("mma.sync.aligned.{shape}.row.col.{types} d, a, b, c;"));
    assert_eq!(mma("m16n8k16", "f32.f16.f16.f32"), (Some(2048), Some("f16")));
    assert_eq!(mma("m16n8k8", "f32.tf32.tf32.f32"), (Some(1024), Some("tf32")));
    assert_eq!(mma("m8n8k4", "f64.f64.f64.f64"), (Some(256), Some("f64")));
    assert_eq!(mma("m8n8k4", "f16.f16.f16.f16"), (Some(4 * 256), Some("f16")));
    assert_eq!(mma("m16n8k32", "satfinite.s32.u8.s8.s32"), (Some(4096), Some("u8")));
    assert_eq!(mma("m16n8k256", "s32.b1.b1.s32.xor.popc"), (Some(32768), Some("b1")));
    assert_eq!(mma("m16n8k64", "kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"), (Some(8192), Some("e2m1")));
    let sparse = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 d, a, b, c, e, 0;";
    assert_eq!(macs(sparse), (Some(4096), Some("f16")));
    let wmma = |words: &str| macs(&format!("wmma.mma.sync.aligned.{words} d, a, b, c;"));
    assert_eq!(wmma("row.col.m32n8k16.f32.f16"), (Some(4096), Some("f16")));
    assert_eq!(wmma("row.col.m16n16k8.f32.tf32.tf32.f32"), (Some(2048), Some("tf32")));
    assert_eq!(wmma("col.row.m8n8k4.rn.f64.f64.f64.f64"), (Some(256), Some("f64")));
    let wgmma = |words: &str| macs(&format!("wgmma.mma_async.sync.aligned.{words} {{a}}, x, y, p;"));
    assert_eq!(wgmma("m64n256k16.f32.f16.f16"), (Some(65536), Some("f16")));
    assert_eq!(wgmma("m64n8k32.s32.u8.u8"), (Some(4096), Some("u8")));
    assert_eq!(macs("tcgen05.mma.cta_group::1.kind::tf32 [taddr0], adesc, bdesc, idesc, p;"), (None, None));

    // Accumulators of wgmma are read and written; what tcgen05 writes is no register.
    check("wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {a,b,c,d}, x, y, p;", "mma w0 r0,1,2,3");
    check("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {a,b}, {c}, {d}, {a,b};", "mma w0 r1,2,3");
    check("tcgen05.mma.cta_group::1.kind::f16 [d], [a], b, i, p;", "mma tensor r0,1,2,3,4");
}
