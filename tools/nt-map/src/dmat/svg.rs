//! A scene as SVG. Cells of one colour are one path, so that half a million of them stay a file that browsers open.

use super::colours::{STEPS, colour, css};
use super::scene::{Anchor, Item, Scene, Size};
use std::fmt::Write;

/// The whole file.
pub(super) fn draw(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, ui-monospace, Menlo, Consolas, monospace\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
            escape(&scene.title)
        ),
    );
    for item in &scene.items {
        draw_item(&mut out, item);
    }
    out.push_str("</svg>\n");
    out
}

fn draw_item(out: &mut String, item: &Item) {
    match item {
        Item::Rect { x, y, width, height, fill } => put(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
                css(*fill)
            ),
        ),
        Item::Line { from, to, stroke } => {
            let middle = |n: u32| f64::from(n) + 0.5;
            put(
                out,
                format_args!(
                    "<path d=\"M{} {}L{} {}\" stroke=\"{}\" fill=\"none\"/>\n",
                    middle(from.0),
                    middle(from.1),
                    middle(to.0),
                    middle(to.1),
                    css(*stroke)
                ),
            );
        }
        Item::Text { x, y, text, size, anchor, fill } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            // Monospaced fonts are six tenths as wide as they are high.
            let (pixels, weight) = match size {
                Size::Small => ("13.3", ""),
                Size::Normal => ("15", ""),
                Size::Title => ("16.7", " font-weight=\"bold\""),
            };
            put(
                out,
                format_args!(
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"{pixels}\"{weight} text-anchor=\"{anchor}\" fill=\"{}\">{}</text>\n",
                    css(*fill),
                    escape(text)
                ),
            );
        }
        Item::Cells { x, cell: (width, height), runs } => {
            put(out, format_args!("<g shape-rendering=\"crispEdges\">\n"));
            for step in 0..STEPS {
                let mut path = String::new();
                for run in runs.iter().filter(|run| run.step == step) {
                    let (left, length) = (x + run.first * width, run.cells * width);
                    put(&mut path, format_args!("M{left} {}h{length}v{height}h-{length}z", run.y));
                }
                if !path.is_empty() {
                    put(out, format_args!("<path fill=\"{}\" d=\"{path}\"/>\n", css(colour(step))));
                }
            }
            out.push_str("</g>\n");
        }
    }
}

/// Writing to a String cannot fail.
fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(what);
}

/// Text between tags; control characters are no XML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
