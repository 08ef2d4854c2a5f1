//! `vprintf`: what threads print.

use super::grid::Shared;
use super::lanes::space_of;
use super::warp::{Failed, Warp, each};
use crate::code::{Slot, Space};
use crate::memory::Bad;

impl Warp<'_> {
    /// Prints in each lane: `format` and `args` are parameters that hold the addresses of a text, and of what is printed.
    pub(super) fn print(
        &mut self,
        own: &mut Shared,
        format: Slot,
        args: Slot,
        result: Option<Slot>,
        active: u32,
    ) -> Result<(), Failed> {
        for lane in each(active) {
            let text = self.printed(own, format, args, lane);
            let text = text.map_err(|bad| (bad, Some(lane as u32)))?;
            own.printed.push_str(&text);
            if let Some(slot) = result {
                let at = lane * self.top().func.param_bytes as usize + slot.offset as usize;
                self.top().params[at..at + 4].fill(0);
            }
        }
        Ok(())
    }

    fn pointer(&mut self, slot: Slot, lane: usize) -> u64 {
        let at = lane * self.top().func.param_bytes as usize + slot.offset as usize;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.top().params[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    fn bytes_at(
        &mut self,
        own: &mut Shared,
        address: u64,
        n: u64,
        lane: usize,
    ) -> Result<u64, Bad> {
        let (space, at) = space_of(address);
        let visit = self.visit(own, lane, true);
        match space {
            Space::Shared => own.memory.load(at, n, "shared", Some(visit)),
            Space::Local => self.local[lane].load(at, n, "local", None),
            _ => self.grid.memory.thread_load(&mut self.last, at, n, visit),
        }
    }

    fn text_at(&mut self, own: &mut Shared, mut address: u64, lane: usize) -> Result<String, Bad> {
        let mut bytes = Vec::new();
        loop {
            match self.bytes_at(own, address, 1, lane)? as u8 {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
            address += 1;
        }
    }

    fn printed(
        &mut self,
        own: &mut Shared,
        format: Slot,
        args: Slot,
        lane: usize,
    ) -> Result<String, Bad> {
        let (format, mut args) = (self.pointer(format, lane), self.pointer(args, lane));
        let format = self.text_at(own, format, lane)?;
        let mut out = String::new();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end =
                rest.find(|c: char| c.is_ascii_alphabetic() && !"hlLqjzt".contains(c) || c == '%');
            let Some(end) = end else { break };
            let (spec, kind) = (&rest[..end], rest.as_bytes()[end]);
            rest = &rest[end + 1..];
            if kind == b'%' {
                out.push('%');
                continue;
            }
            let wide = spec.contains("ll") || spec.contains('l') || !b"diuxXoc".contains(&kind);
            let size = if wide { 8 } else { 4 };
            args = args.next_multiple_of(size);
            let value = self.bytes_at(own, args, size, lane)?;
            args += size;
            let text = match kind {
                b's' => self.text_at(own, value, lane)?,
                kind => number(spec, kind, size, value),
            };
            let width = spec.trim_start_matches(['-', '+', ' ', '#']);
            let width: usize = width
                .split(['.', 'l', 'h'])
                .next()
                .and_then(|w| w.parse().ok())
                .unwrap_or(0);
            match spec.starts_with('-') {
                true => out.push_str(&format!("{text:<width$}")),
                false => out.push_str(&format!("{text:>width$}")),
            }
        }
        out.push_str(rest);
        Ok(out)
    }
}

fn number(spec: &str, kind: u8, size: u64, value: u64) -> String {
    let signed = match size {
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    };
    let precision = spec
        .split_once('.')
        .map(|(_, p)| p.trim_end_matches(['l', 'h']));
    let precision = precision.and_then(|p| p.parse::<usize>().ok()).unwrap_or(6);
    let float = f64::from_bits(value);
    match kind {
        b'd' | b'i' => signed.to_string(),
        b'u' => value.to_string(),
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        b'o' => format!("{value:o}"),
        b'p' => format!("{value:#x}"),
        b'c' => char::from(value as u8).to_string(),
        b'e' => format!("{float:.precision$e}"),
        b'g' => float.to_string(),
        _ => format!("{float:.precision$}"),
    }
}
