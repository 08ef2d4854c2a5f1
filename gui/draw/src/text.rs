//! Text, dot by dot.

use tiny_skia::{Rect, Transform};

use crate::font;
use crate::picture::{Picture, paint};

impl Picture {
    /// Draws a text whose upper left corner is at (x, y).
    pub fn text(&mut self, content: &str, x: f32, y: f32, size: f32, color: u32) {
        // A capital is as high and begins as far below the top as one of Taichi's font.
        let dot = size / 11.0;
        let y = y + 0.12 * size;
        let paint = paint(color);
        let (mut left, mut top) = (x, y);
        for c in content.chars() {
            if c == '\n' {
                (left, top) = (x, top + 9.0 * dot);
                continue;
            }
            for (k, column) in font::columns(c).into_iter().enumerate() {
                for row in (0..7).filter(|row| column >> row & 1 == 1) {
                    let (dx, dy) = (left + k as f32 * dot, top + row as f32 * dot);
                    if let Some(rect) = Rect::from_xywh(dx, dy, dot, dot) {
                        self.pixmap
                            .fill_rect(rect, &paint, Transform::identity(), None);
                    }
                }
            }
            left += 6.0 * dot;
        }
    }
}
