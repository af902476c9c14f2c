//! A scene as PNG, drawn pixel by pixel; letters are the bitmap fonts of the X Window System, which need no files.

use super::colours::{Rgb, colour};
use super::scene::{Anchor, Item, Scene, Size};
use anyhow::Context;
use embedded_graphics::mono_font::iso_8859_1::{FONT_8X13, FONT_9X15, FONT_10X20};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};
use std::convert::Infallible;

/// The whole file.
pub(super) fn draw(scene: &Scene) -> anyhow::Result<Vec<u8>> {
    let mut canvas = Canvas::new(scene.width, scene.height);
    for item in &scene.items {
        canvas.item(item);
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, scene.width, scene.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&canvas.pixels))
        .context("failed to make the PNG")?;
    Ok(bytes)
}

struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: u32, height: u32) -> Canvas {
        Canvas { width, height, pixels: vec![0xff; width as usize * height as usize * 3] }
    }

    fn rect(&mut self, x: u32, y: u32, width: u32, height: u32, fill: Rgb) {
        let (right, bottom) =
            (x.saturating_add(width).min(self.width), y.saturating_add(height).min(self.height));
        for y in y..bottom {
            let row = (y * self.width) as usize * 3;
            let line = self.pixels.get_mut(row + x.min(right) as usize * 3..row + right as usize * 3);
            line.unwrap_or_default().chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&fill));
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Rect { x, y, width, height, fill } => self.rect(*x, *y, *width, *height, *fill),
            Item::Line { from, to, stroke } => {
                let (x, y) = (from.0.min(to.0), from.1.min(to.1));
                self.rect(x, y, from.0.abs_diff(to.0) + 1, from.1.abs_diff(to.1) + 1, *stroke);
            }
            Item::Text { x, y, text, size, anchor, fill } => self.text(*x, *y, text, *size, *anchor, *fill),
            Item::Cells { x, cell: (width, height), runs } => {
                for run in runs {
                    self.rect(x + run.first * width, run.y, run.cells * width, *height, colour(run.step));
                }
            }
        }
    }

    fn text(&mut self, x: u32, y: u32, text: &str, size: Size, anchor: Anchor, [red, green, blue]: Rgb) {
        let font: &MonoFont<'_> = match size {
            Size::Small => &FONT_8X13,
            Size::Normal => &FONT_9X15,
            Size::Title => &FONT_10X20,
        };
        let alignment = match anchor {
            Anchor::Start => Alignment::Left,
            Anchor::Middle => Alignment::Center,
            Anchor::End => Alignment::Right,
        };
        let style = TextStyleBuilder::new().alignment(alignment).baseline(Baseline::Alphabetic).build();
        let character = MonoTextStyle::new(font, Rgb888::new(red, green, blue));
        let place = Point::new(x as i32, y as i32);
        // Drawing on memory cannot fail.
        let _ = Text::with_text_style(text, place, character, style).draw(self);
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> embedded_graphics::geometry::Size {
        embedded_graphics::geometry::Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(place, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(place.x), u32::try_from(place.y)) else { continue };
            self.rect(x, y, 1, 1, [colour.r(), colour.g(), colour.b()]);
        }
        Ok(())
    }
}
