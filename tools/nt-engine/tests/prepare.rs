//! Images through the whole engine: real PTX of nvcc and Triton, with the real assembler where there is one.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first thing that is wrong")]

use nt_engine::assemble::Assembler;
use nt_engine::cache::Cache;
use nt_engine::choose::Choice;
use nt_engine::{Engine, Prepared, Probe, Refusal};
use nt_ir::launch::Conditions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When each warp began and how long it took: a site at the entry and one at each exit.
const PROGRAM: &str = r#"program "warps"
map warps: array<warp> { start: u64, elapsed: u64, cu: u32 }
state start: u64 = 0
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp kernel:exit {
  %0: u64 uniform = state start
  %1: u64 uniform = clock
  %2: u64 uniform = sub %1, %0
  %3: u32 uniform = cu
  save warps(start = %0, elapsed = %2, cu = %3)
}
"#;

fn probe() -> Probe {
    let (program, found) = nt_ir::text::parse(PROGRAM);
    assert!(!found.has_errors(), "{found:?}");
    Probe::new(program.unwrap(), b"its compiled form").unwrap()
}

fn engine(choices: &[&str], assembler: Option<Assembler>, cache: Cache) -> Engine {
    let choices = choices.iter().map(|word| word.parse::<Choice>().unwrap()).collect();
    Engine::new(probe(), choices, assembler, cache)
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(testdata().join(name)).unwrap()
}

/// The assembler, or a word on what is not tested.
fn assembler() -> Option<Assembler> {
    let found = Assembler::find(None).unwrap();
    if found.is_none() {
        eprintln!("skipped: there is no ptxas on PATH (make deps)");
    }
    found
}

/// The first kernel of an image on a device.
fn first(engine: &Engine, image: &[u8], device: u32) -> Result<Arc<Prepared>, Refusal> {
    let found = engine.inspect(image);
    let Some(kernel) = found.selected.first() else {
        return Err(Refusal { reason: found.reason, bug: None });
    };
    engine.prepare(found.image, kernel, device, Conditions::NONE)
}

fn reason(image: &str, device: u32) -> String {
    first(&engine(&[], None, Cache::none()), image.as_bytes(), device).unwrap_err().reason
}

#[test]
fn variables_are_the_originals() {
    let image = ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 count;\n.const .u32 lut[4];\n\
                 .entry k() { .reg .u32 %r<3>; ld.global.u32 %r1, [count]; ld.const.u32 %r2, [lut]; ret; }";
    let prepared = first(&engine(&[], None, Cache::none()), image.as_bytes(), 90).unwrap();
    let twin = prepared.twin();
    assert_eq!(twin.pins, [nt_wire::message::Pin { symbol: "count".to_owned(), index: 0 }]);
    assert_eq!(twin.constants, [nt_wire::message::Constant { symbol: "lut".to_owned(), size: 16 }]);
    assert!(prepared.woven.contains("ld.const.b64 %nt_g0, [nt_pin+0];"), "{}", prepared.woven);
}

#[test]
fn without_an_assembler_the_twin_is_ptx() {
    let image = read("nvcc/kernels.sm_90.ptx");
    let engine = engine(&["=vector_add"], None, Cache::none());
    let found = engine.inspect(image.as_bytes());
    assert_eq!(found.selected, ["vector_add"]);
    assert_eq!(found.kernels.len(), 11);
    let prepared = engine.prepare(found.image, "vector_add", 90, Conditions::NONE).unwrap();
    assert!(!prepared.is_cubin);
    let text = prepared.image.strip_suffix(b"\0").unwrap();
    assert_eq!(text, prepared.woven.as_bytes());
    // The twin holds that kernel alone.
    assert_eq!(prepared.woven.matches(".entry").count(), 1);
    let twin = prepared.twin();
    assert_eq!(twin.size, prepared.image.len() as u64);
    // vector_add(const float *, const float *, float *, int)
    let params: Vec<_> = twin.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(params, [(0, 8), (8, 8), (16, 8), (24, 4)]);
    assert_eq!(twin.maps.len(), 1);
    assert!(nt_trace::Manifest::parse(&twin.manifest).is_ok());
}

#[test]
fn sites_have_their_lines_in_the_image() {
    let image = read("nvcc/kernels.sm_90.ptx");
    let engine = engine(&["=vector_add"], None, Cache::none());
    let prepared = first(&engine, image.as_bytes(), 90).unwrap();
    let sites = &prepared.manifest.kernels[0].sites;
    let lines: Vec<&str> = image.lines().collect();
    let exits: Vec<_> = sites.iter().filter(|site| site.kind == "kernel:exit").collect();
    assert!(!exits.is_empty());
    for site in exits {
        assert_eq!(lines[site.line as usize - 1].trim(), "ret;");
    }
}

#[test]
fn refusals_say_why_on_one_line() {
    let module = |text: &str| format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}");
    let check = |text: &str, device: u32, parts: &[&str]| {
        let reason = reason(text, device);
        for part in parts {
            assert!(reason.contains(part), "`{reason}` lacks `{part}`");
        }
        assert!(!reason.contains('\n'));
    };
    check(&module(".entry k() { mov.u32 %r1 %tid.x\n ret; }\n.entry"), 90, &["line "]);
    check(&module(".func f() { ret; }"), 90, &["no kernel"]);
    check("\x7fELF", 90, &["no PTX"]);
    check(
        &module(
            ".texref t;\n.entry k() { .reg .f32 %f<5>; tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, {%f1}]; ret; }",
        ),
        90,
        &[".texref variable `t`", "bound in the original module"],
    );
    let loads = ".entry k() { .reg .b64 %r<2>; ld.global.b64 %r1, [v]; ret; }";
    check(
        &module(&format!(".global .attribute(.managed) .u64 v;\n{loads}")),
        90,
        &["the managed variable `v`"],
    );
    check(
        &module(&format!(".func f() {{ ret; }}\n.global .u64 v[1] = {{f}};\n{loads}")),
        90,
        &["`v`, which it uses, holds the address of the function `f`"],
    );
    check(
        &module(
            ".entry k(.param .u64 f) { .reg .b64 %f; ld.param.b64 %f, [f];\np: .callprototype _ ();\n\
                 call %f, p; ret; }",
        ),
        90,
        &["it calls functions through pointers"],
    );
    // Through a function that it calls.
    check(
        &module(
            ".global .attribute(.managed) .u32 count;\n.func f() { .reg .u32 %r<2>; ld.global.u32 %r1, [count]; \
             ret; }\n.entry k() { call.uni f; ret; }",
        ),
        90,
        &["`count`"],
    );
    check(&module(".entry k() { ret; }"), 80, &["no PTX for sm_80: PTX for sm_90 only"]);
    // What is linked in by whoever loads the original is not there for a twin.
    check(
        &module(".extern .func f;\n.entry k() { call.uni f; ret; }"),
        90,
        &["it calls `f`, which is in another module"],
    );
    check(
        &module(
            ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n.entry k() {\n\
             .reg .b64 %a; { .param .b64 p; .param .b64 q; .param .b32 r;\n\
             call.uni (r), cudaLaunchDeviceV2, (p, q); } ret; }",
        ),
        90,
        &["it launches kernels itself"],
    );
}

#[test]
fn refusals_of_the_weaver_name_the_line_of_the_image() {
    let image = ".version 8.0\n.target sm_90\n.address_size 64\n.entry other()\n{\nret;\n}\n\
                 .entry shadows()\n{\n.reg .b32 %clock;\nret;\n}\n";
    let engine = engine(&["=shadows"], None, Cache::none());
    let reason = first(&engine, image.as_bytes(), 90).unwrap_err().reason;
    let line: usize = reason.strip_prefix("line ").unwrap().split(':').next().unwrap().parse().unwrap();
    let there = image.lines().nth(line - 1).unwrap();
    assert!(there.contains("%clock"), "{reason}: `{there}`");
}

#[test]
fn variables_that_other_kernels_use_are_none_of_its_business() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 count;\n.extern .shared .b8 pool[];\n\
                .entry a() { .reg .u32 %r<2>; ld.shared.u32 %r1, [pool]; ret; }\n\
                .entry b() { .reg .u32 %r<2>; ld.global.u32 %r1, [count]; ret; }\n";
    let prepared = first(&engine(&["=a"], None, Cache::none()), text.as_bytes(), 90).unwrap();
    assert!(!prepared.original.contains("count") && prepared.original.contains("pool"));
}

/// Whatever holds of the launches: a twin relies on no more than that, and says so to the hook as well as in the manifest.
#[test]
fn twins_rely_on_what_holds_alone() {
    let image = read("nvcc/kernels.sm_90.ptx");
    let engine = engine(&[], None, Cache::none());
    let found = engine.inspect(image.as_bytes());
    for bits in 0..=Conditions::ALL.bits() {
        let holds = Conditions::from_bits(bits).unwrap();
        let prepared = engine.prepare(found.image, "softmax_rows", 90, holds).unwrap();
        let assumes = prepared.manifest.kernels[0].conditions();
        assert!(assumes.is_subset_of(holds), "{holds}: {assumes}");
        assert_eq!(prepared.twin().assumes, assumes.bits());
    }
    for (grid, block) in [([1, 1, 1], [64, 1, 1]), ([1, 2, 1], [33, 1, 1]), ([5, 1, 1], [32, 4, 2])] {
        assert_eq!(nt_wire::message::holds(grid, block), Conditions::of(grid, block).bits());
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    let image = read("nvcc/kernels.sm_90.ptx");
    let engine = engine(&[], None, Cache::none());
    let found = engine.inspect(image.as_bytes());
    assert_eq!(engine.inspect(image.as_bytes()), found);
    let answers: Vec<Arc<Prepared>> = std::thread::scope(|scope| {
        let ask = || engine.prepare(found.image, "softmax_rows", 90, Conditions::NONE).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| Arc::ptr_eq(answer, &answers[0])));
    assert!(
        engine
            .prepare(found.image, "no_such", 90, Conditions::NONE)
            .unwrap_err()
            .reason
            .contains("not selected")
    );
    assert!(engine.prepare(99, "softmax_rows", 90, Conditions::NONE).is_err());
}

/// The corpora: a folder a compiler.
fn corpora() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(testdata()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|path| path.is_dir())
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "ptx"))
        .collect();
    files.sort();
    files
}

/// Prepares all kernels of the corpora, those of `assembled` with the assembler; gives how many were.
fn prepare_all(probe: &Probe, assembled: impl Fn(&str) -> bool) -> usize {
    let assembler = assembler();
    let engines = [None, assembler.clone()]
        .map(|assembler| Engine::new(probe.clone(), Vec::new(), assembler, Cache::none()));
    let (mut probed, mut refused) = (0, Vec::new());
    for file in corpora() {
        let image = std::fs::read(&file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let assembled = assembler.is_some() && assembled(&name);
        let engine = &engines[usize::from(assembled)];
        let found = engine.inspect(&image);
        assert_eq!(found.reason, "", "{}", file.display());
        for kernel in &found.selected {
            match engine.prepare(found.image, kernel, found.newest.unwrap(), Conditions::NONE) {
                Ok(prepared) => {
                    probed += 1;
                    let kernel = &prepared.manifest.kernels[0];
                    // Some texts are newer than the assembler here.
                    let too_old = prepared.notes.iter().any(|note| note.contains("too old"));
                    assert_eq!(prepared.is_cubin, assembled && !too_old);
                    assert_eq!(kernel.after.is_some(), prepared.is_cubin);
                    assert_eq!(prepared.image.starts_with(b"\x7fELF"), prepared.is_cubin);
                    let entry = prepared.manifest.entry(&kernel.name).unwrap();
                    assert!(nt_trace::Manifest::parse(&entry).is_ok(), "{name} {}", kernel.name);
                }
                Err(refusal) => {
                    assert!(refusal.bug.is_none(), "{name} {kernel}: {}", refusal.reason);
                    refused.push(format!("{name} {kernel}: {}", refusal.reason));
                }
            }
        }
    }
    eprintln!("{probed} kernels probed, {} refused:\n{}", refused.len(), refused.join("\n"));
    probed
}

#[test]
fn every_kernel_of_real_compilers_is_probed_or_refused_for_a_reason() {
    // To assemble one architecture, and the newest of Triton, takes long enough.
    let probed = prepare_all(&probe(), |name| name.ends_with("s.sm_90") || name.ends_with("100a"));
    assert!(probed > 120, "{probed}");
}

#[test]
fn what_counts_is_woven_into_real_kernels_too() {
    let shipped = |name: &str| {
        let (program, found) = nt_probe::compile(nt_probe::shipped(name).unwrap(), name);
        assert!(!found.has_errors(), "{found:?}");
        Probe::new(program.unwrap(), name.as_bytes()).unwrap()
    };
    let probed = prepare_all(&shipped("gmem_bytes"), |name| name.ends_with("s.sm_90"));
    assert!(probed > 100, "{probed}");
    prepare_all(&shipped("tensorop_count"), |name| name.starts_with("matmul.sm_90"));
}

#[test]
fn what_was_assembled_is_not_assembled_again() {
    let Some(real) = assembler() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Counts how often it is run on a text.
    let counting = folder.path().join("ptxas");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo run >>{0}/runs\nexec {1} \"$@\"\n",
        folder.path().display(),
        real.path().display()
    );
    std::fs::write(&counting, script).unwrap();
    std::fs::set_permissions(&counting, std::fs::Permissions::from_mode(0o755)).unwrap();
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap_or_default().lines().count();

    let image = read("nvcc/kernels.sm_90.ptx");
    let prepare = |names: &[&str]| {
        let assembler = Assembler::find(Some(&counting)).unwrap();
        let cache = Cache::at(&folder.path().join("cache"), Cache::LIMIT);
        first(&engine(names, assembler, cache), image.as_bytes(), 90).unwrap()
    };
    let cold = prepare(&["=vector_add"]);
    assert_eq!((runs(), cold.cost.assembled), (2, 2));
    let warm = prepare(&["=vector_add"]);
    assert_eq!((runs(), warm.cost.assembled), (2, 0));
    assert_eq!((&warm.image, &warm.manifest), (&cold.image, &cold.manifest));
    prepare(&["=transpose"]);
    assert_eq!(runs(), 4);
    // What ptxas 13.0 says of the original when it is asked directly.
    assert!(cold.manifest.kernels[0].before.unwrap().registers >= 8);
}

/// A fatbin that nvcc made with a limit to registers: the twin keeps to it, as the program's own machine code does.
#[test]
fn what_an_image_wants_to_be_assembled_with() {
    let Some(real) = assembler() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/kernels.cu");
    let fatbin = |options: &[&str]| {
        let out = folder.path().join("k.fatbin");
        let mut nvcc = std::process::Command::new("nvcc");
        nvcc.args(["-fatbin", "-std=c++17", "-gencode", "arch=compute_90,code=compute_90", "-o"]).arg(&out);
        let done = nvcc.args(options).arg(&kernels).status();
        done.is_ok_and(|status| status.success()).then(|| std::fs::read(out).unwrap())
    };
    let Some(limited) = fatbin(&["-maxrregcount=24", "-Xptxas", "-v,--warn-on-spills"]) else {
        eprintln!("skipped: there is no nvcc on PATH (make deps)");
        return;
    };
    let registers = |image: &[u8]| {
        let engine = engine(&["=attention_online"], Some(real.clone()), Cache::none());
        let prepared = first(&engine, image, 90).unwrap();
        assert_eq!(prepared.notes, Vec::<String>::new());
        let kernel = &prepared.manifest.kernels[0];
        [kernel.before, kernel.after].map(|resources| resources.unwrap().registers)
    };
    assert_eq!(registers(&limited), [24, 24]);
    assert!(registers(&fatbin(&[]).unwrap()).iter().all(|&registers| registers > 24));

    // Without an assembler of ours, it is told that the driver's is not told.
    let engine = engine(&["=attention_online"], None, Cache::none());
    let notes = &first(&engine, &limited, 90).unwrap().notes;
    assert_eq!(notes[..], ["the driver assembles without `-maxrregcount=24`, which an image asks for"]);
}

#[test]
fn an_assembler_that_is_too_old_leaves_it_to_the_driver() {
    let Some(real) = assembler() else { return };
    let text = ".version 99.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n";
    let prepared = first(&engine(&[], Some(real), Cache::none()), text.as_bytes(), 90);
    match prepared {
        Ok(prepared) => {
            assert!(!prepared.is_cubin);
            assert!(prepared.notes[0].contains("too old"), "{:?}", prepared.notes);
        }
        Err(refusal) => assert!(refusal.bug.is_none(), "{}", refusal.reason),
    }
}

/// What a program names and no kernel has is told of all kernels together, what only one has is not.
#[test]
fn names_that_are_nowhere_are_told_with_the_nearest() {
    let program = "kernel:exit, mark:\"half\", line:\"kernels.cu\":21, line:\"kernels.cu\":1, \
                   kernel:\"vector_ad\":entry { @ = count(); }";
    let (program, found) = nt_probe::compile(program, "named");
    assert!(!found.has_errors(), "{found:?}");
    let choices = ["=vector_add", "=vector_sub"].map(|word| word.parse::<Choice>().unwrap());
    let probe = Probe::new(program.unwrap(), b"").unwrap();
    let engine = Engine::new(probe, choices.to_vec(), None, Cache::none());
    assert_eq!(engine.unmatched(), [""; 0]);
    let found = engine.inspect(read("nvcc/kernels.lineinfo.sm_90.ptx").as_bytes());
    engine.prepare(found.image, "vector_add", 90, Conditions::NONE).unwrap();
    // `bench/kernels.cu`: vector_add stands in lines 19 to 22.
    let nothing = "matches nothing that was launched";
    assert_eq!(
        engine.unmatched(),
        [
            format!("`mark:\"half\"` {nothing}: there are no marks: `.pragma \"nt.mark NAME\";` sets one"),
            format!("`line:\"kernels.cu\":1` {nothing}: the nearest line of `kernels.cu` with code is 19"),
            format!("`kernel:\"vector_ad\":entry` {nothing}: the nearest is `vector_add`"),
        ]
    );
    assert_eq!(engine.not_found(3), [("=vector_sub".to_owned(), vec!["vector_add".to_owned()])]);
}

/// A kernel without a site says what there is instead.
#[test]
fn a_kernel_without_a_site_names_the_nearest() {
    let (program, _) = nt_probe::compile("inst:load.local { @ = count(); }", "local");
    let choices = vec!["=vector_add".parse::<Choice>().unwrap()];
    let engine = Engine::new(Probe::new(program.unwrap(), b"").unwrap(), choices, None, Cache::none());
    let why = first(&engine, read("nvcc/kernels.sm_90.ptx").as_bytes(), 90).unwrap_err().reason;
    let expected = "no tracepoint of the probe is in it (0 sites): of `inst:load.local`, there are \
                    `inst:load.global`, `inst:load.param`";
    assert_eq!(why, expected);
}

/// What a module alone can have, by its name and with a way out. The reasons are whole: they stand in summaries.
#[test]
fn variables_that_no_twin_can_have_are_named() {
    let check = |text: &str, expected: &str| {
        let image = format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}");
        assert_eq!(reason(&image, 90), expected);
    };
    let texture = |declared: &str, sort: &str| {
        let fetch = "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1}];";
        let text = format!("{declared} t;\n.entry k() {{ .reg .f32 %f<5>; {fetch} ret; }}");
        let why = "which is bound in the original module alone: texture and surface objects, which are arguments, \
                   can be probed";
        check(&text, &format!("it uses the {sort} variable `t`, {why}"));
    };
    texture(".texref", ".texref");
    texture(".global .texref", ".texref");
    texture(".visible .global .texref", ".texref");
    texture(".global .surfref", ".surfref");
    texture(".samplerref", ".samplerref");
    let loads = ".entry k() { .reg .b64 %r<2>; ld.global.b64 %r1, [v]; ret; }";
    check(
        &format!(".visible .global .attribute(.managed) .align 8 .u64 v = 3;\n{loads}"),
        "it uses the managed variable `v`: memory of `cudaMallocManaged` can be probed",
    );
    check(
        &format!(".func f() {{ ret; }}\n.global .u64 v[2] = {{0, f}};\n{loads}"),
        "`v`, which it uses, holds the address of the function `f`",
    );
    // A name that looks like one is none.
    let image = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .b64 v;\n.global .b64 managed;\n{loads}"
    );
    assert!(first(&engine(&[], None, Cache::none()), image.as_bytes(), 90).is_ok());
}

/// A variable that is the original's is not in the twin's module, where it would take its bytes a second time.
#[test]
fn large_variables_are_not_allocated_again() {
    let image = b".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 big[1073741824];\n\
        .global .u64 place = generic(big);\n.const .u32 key;\n.func add(.param .b32 x) {\n.reg .b32 %r<3>;\n\
        ld.param.b32 %r1, [x]; atom.global.add.u32 %r2, [big+8], %r1; ret; }\n.entry k()\n{\n.reg .b32 %r<3>;\n\
        .reg .b64 %rd<2>;\nld.const.b32 %r1, [key];\nld.global.b64 %rd1, [place];\nst.global.b32 [big+4], %r1;\n\
        { .param .b32 p; st.param.b32 [p], %r1; call add, (p); }\nret;\n}\n";
    let assembler = assembler();
    let assembled = assembler.is_some();
    let prepared = first(&engine(&[], assembler, Cache::none()), image, 90).unwrap();
    let pins: Vec<String> = prepared.twin().pins.into_iter().map(|pin| pin.symbol).collect();
    assert_eq!(pins, ["big", "place"]);
    // ptxas puts variables without an initialiser into `.nv.global`, others into `.nv.global.init`.
    let has = |what: &[u8]| memchr::memmem::find(&prepared.image, what).is_some();
    assert!(!has(b".nv.global") && !has(b".global .align 4 .b8 big"));
    assert!(if assembled { has(b".nv.constant3") } else { has(b".const .u32 key;") });
    // What is kept for readers of a refusal is whole.
    assert!(prepared.woven.contains(".b8 big[1073741824];"));
}

/// What a program tells the driver's assembler holds for the twin, where the driver would assemble the original.
#[test]
fn options_of_a_load_hold_for_the_twin() {
    let Some(assembler) = assembler() else { return };
    let engine = engine(&["=tiny", "=matmul_tiled"], Some(assembler), Cache::none());
    let options = |bytes: &[u8], kernel: &str, jit: &str| {
        let found = engine.inspect_with(bytes, jit);
        let prepared = engine.prepare(found.image, kernel, 90, Conditions::NONE).unwrap();
        let cubin = nt_object::cubin::read(&prepared.image, 0).unwrap();
        (cubin.options.unwrap_or_default(), prepared.notes.clone())
    };
    let ptx = read("nvcc/kernels.sm_90.ptx");
    let of_ptx = |jit: &str| options(ptx.as_bytes(), "matmul_tiled", jit);
    assert_eq!(of_ptx("").0, "");
    let limited = of_ptx("-maxrregcount=40 -O1").0;
    assert!(limited.contains("-maxrregcount 40") && limited.contains("-O 1"), "{limited}");
    assert_eq!(of_ptx("").0, "");
    let (_, notes) = of_ptx("CU_JIT_THREADS_PER_BLOCK=512");
    assert!(notes.iter().any(|note| note.contains("`CU_JIT_THREADS_PER_BLOCK=512`")), "{notes:?}");
    // A fatbin with PTX for sm_90a, and machine code for sm_80 alone: the driver assembles it for 9.0.
    let fatbin = std::fs::read(testdata().join("../fatbin/tiny.zstd.fatbin")).unwrap();
    assert!(options(&fatbin, "tiny", "-maxrregcount=24").0.contains("-maxrregcount 24"));
    // A cubin is not assembled any more.
    let cubin = std::fs::read(testdata().join("../cubin/vector_add.sm_90a.cubin")).unwrap();
    let engine = self::engine(&[], Assembler::find(None).unwrap(), Cache::none());
    let found = engine.inspect_with(&cubin, "-maxrregcount=24");
    let prepared = engine.prepare(found.image, "vector_add", 90, Conditions::NONE).unwrap();
    let told = nt_object::cubin::read(&prepared.image, 0).unwrap().options.unwrap_or_default();
    assert!(!told.contains("maxrregcount"), "{told}");
}
