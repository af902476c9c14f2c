//! Makes the parser of the probe language from `grammar/probe.lalrpop`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    lalrpop::Configuration::new()
        .set_out_dir(out)
        .emit_rerun_directives(true)
        .process_file("../../grammar/probe.lalrpop")
}
