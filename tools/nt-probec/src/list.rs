//! `--list`: a line each, tabs between, for people, grep and awk.

use nt_probe::Shipped;

/// The first line, which names the columns.
const HEADER: &str = "kind\tname\tis\tabout\n";

/// Shipped probes, each with what keeps it from compiling today; then what the language gives.
pub(crate) fn run() -> String {
    let mut text = HEADER.to_owned();
    for probe in nt_probe::SHIPPED {
        let state = state(probe);
        line(&mut text, ["probe", probe.name, &state, probe.summary()]);
    }
    for (kind, name, ty, about) in nt_probe::given() {
        line(&mut text, [kind, name, ty, about]);
    }
    text
}

/// Whether a shipped probe compiles, and what it waits for.
fn state(probe: &Shipped) -> String {
    let missing = nt_probe::missing(probe.text);
    match missing.is_empty() {
        true => "compiles".to_owned(),
        false => format!("not yet: {}", missing.join(", ")),
    }
}

fn line(text: &mut String, columns: [&str; 4]) {
    text.push_str(&columns.join("\t"));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_has_the_columns_of_the_header() {
        let text = super::run();
        assert!(text.lines().all(|line| line.split('\t').count() == 4), "{text}");
        assert!(text.contains("\nprobe\tblock_sched\tcompiles\twhen each warp started"), "{text}");
        assert!(text.contains("\nprobe\tdmat\tcompiles"), "{text}");
        assert!(text.contains("\nprobe\tgmem_bytes\tcompiles\tbytes asked of global memory"), "{text}");
        assert!(
            text.contains("\nprobe\twarp_lifetime\tnot yet: `hist` aggregations, `avg` aggregations\t"),
            "{text}"
        );
        for start in [
            "class\tload\t",
            "class\taccess\tgroup\t",
            "qualifier\tv4\t",
            "operand\twidth\t",
            "operand\taddr\tptr\t",
            "builtin\tclock\tu64\t",
            "reducer\tfirst\t",
        ] {
            assert!(text.contains(&format!("\n{start}")), "{start}");
        }
    }
}
