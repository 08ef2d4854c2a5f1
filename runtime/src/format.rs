//! Text of a value as C's `printf` writes it, since that is what a kernel's `print` means.

use std::fmt::Write;

use aerogel_base::{Scalar, ScalarType};

/// Appends the value in `slot`. `format` is the inside of a C conversion (`.3f`, `05d`, `x`);
/// empty means the type's default: `%f` for `f16` and `f32`, `%.12f` for `f64`, `%d` or `%u`.
pub fn value(out: &mut String, ty: ScalarType, format: &str, slot: u64) {
    let scalar = Scalar::from_slot(ty, slot);
    let mut spec = Spec::parse(format);
    if spec.conversion == '\0' {
        spec.conversion = if ty.is_float() { 'f' } else { 'd' };
        if ty == ScalarType::F64 && spec.precision.is_none() {
            spec.precision = Some(12);
        }
    }
    let (negative, body) = match spec.conversion {
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => float(scalar.to_f64(), &spec),
        'x' | 'X' | 'o' | 'b' | 'u' => (false, unsigned(scalar, &spec)),
        'c' => (
            false,
            char::from_u32(integer(scalar) as u32).map_or_else(String::new, String::from),
        ),
        _ => {
            let number = integer(scalar);
            let width = spec.precision.unwrap_or(0);
            (number < 0, format!("{:0width$}", number.unsigned_abs()))
        }
    };
    spec.pad(out, negative, &body);
}

/// A parsed conversion.
#[derive(Default)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

impl Spec {
    fn parse(format: &str) -> Self {
        let mut spec = Spec::default();
        let mut chars = format.trim_start_matches('%').chars().peekable();
        while let Some(&c) = chars.peek() {
            match c {
                '-' | '<' => spec.left = true,
                '0' => spec.zero = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.alternate = true,
                '>' => {}
                _ => break,
            }
            chars.next();
        }
        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
            spec.width = (spec.width * 10 + digit as usize).min(4096);
            chars.next();
        }
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut precision = 0;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                precision = (precision * 10 + digit as usize).min(4096);
                chars.next();
            }
            spec.precision = Some(precision);
        }
        spec.conversion = chars
            .find(|c| !matches!(c, 'l' | 'h' | 'z' | 'j'))
            .unwrap_or('\0');
        spec
    }

    fn pad(&self, out: &mut String, negative: bool, body: &str) {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let fill = self.width.saturating_sub(sign.len() + body.chars().count());
        let finite = body.starts_with(|c: char| c.is_ascii_hexdigit());
        if self.left {
            let _ = write!(out, "{sign}{body}{:fill$}", "");
        } else if self.zero && finite {
            let _ = write!(out, "{sign}{:0<fill$}{body}", "");
        } else {
            let _ = write!(out, "{:fill$}{sign}{body}", "");
        }
    }
}

/// A value as an integer; floats are cut off as C's cast does.
fn integer(scalar: Scalar) -> i128 {
    if scalar.ty().is_float() {
        scalar.as_f64() as i64 as i128
    } else {
        scalar.as_i128()
    }
}

fn unsigned(scalar: Scalar, spec: &Spec) -> String {
    let bits = scalar.ty().bits().max(8);
    let number = (integer(scalar) as u64) & (u64::MAX >> (64 - bits));
    let width = spec.precision.unwrap_or(0);
    match (spec.conversion, spec.alternate) {
        ('x', false) => format!("{number:0width$x}"),
        ('x', true) => format!("0x{number:0width$x}"),
        ('X', false) => format!("{number:0width$X}"),
        ('X', true) => format!("0X{number:0width$X}"),
        ('o', _) => format!("{number:0width$o}"),
        ('b', _) => format!("{number:0width$b}"),
        _ => format!("{number:0width$}"),
    }
}

/// Whether the number is negative, and the text of its absolute value.
fn float(number: f64, spec: &Spec) -> (bool, String) {
    let negative = number.is_sign_negative();
    let number = number.abs();
    let upper = spec.conversion.is_ascii_uppercase();
    let precision = spec.precision.unwrap_or(6);
    let text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        "inf".to_owned()
    } else {
        match spec.conversion.to_ascii_lowercase() {
            'e' => exponent_form(number, precision),
            'g' => general(number, precision.max(1), spec.alternate),
            _ => format!("{number:.precision$}"),
        }
    };
    (negative, if upper { text.to_uppercase() } else { text })
}

/// `d.ddde+xx`, with at least two digits of exponent.
fn exponent_form(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text
        .split_once('e')
        .expect("`e` formatting has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`: the shorter of the two forms, without trailing zeros.
fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent_form(number, precision - 1);
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("`e` formatting has an exponent");
    let magnitude: i32 = exponent.parse().expect("the exponent is a number");
    let strip = |text: &str| {
        if keep_zeros || !text.contains('.') {
            text.to_owned()
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    if magnitude < -4 || magnitude >= precision as i32 {
        format!("{}e{exponent}", strip(mantissa))
    } else {
        let decimals = (precision as i32 - 1 - magnitude).max(0) as usize;
        strip(&format!("{number:.decimals$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: &str, scalar: Scalar) -> String {
        let mut out = String::new();
        value(&mut out, scalar.ty(), format, scalar.slot());
        out
    }

    #[test]
    fn defaults_are_those_of_printf() {
        assert_eq!(text("", Scalar::f32(1.5)), "1.500000");
        assert_eq!(text("", Scalar::f32(-0.0)), "-0.000000");
        assert_eq!(
            text("", Scalar::float(ScalarType::F64, 0.1)),
            "0.100000000000"
        );
        assert_eq!(text("", Scalar::i32(-7)), "-7");
        assert_eq!(text("", Scalar::bool(true)), "1");
        assert_eq!(text("", Scalar::int(ScalarType::U8, 200)), "200");
        assert_eq!(text("", Scalar::f32(f32::INFINITY)), "inf");
        assert_eq!(text("", Scalar::f32(-f32::INFINITY)), "-inf");
    }

    #[test]
    fn conversions() {
        let pi = Scalar::float(ScalarType::F64, std::f64::consts::PI);
        assert_eq!(text(".3f", pi), "3.142");
        assert_eq!(text("10.2f", pi), "      3.14");
        assert_eq!(text("-8.2f", pi), "3.14    ");
        assert_eq!(text("010.2f", pi), "0000003.14");
        assert_eq!(text("+.1e", pi), "+3.1e+00");
        assert_eq!(text("g", Scalar::float(ScalarType::F64, 1e-7)), "1e-07");
        assert_eq!(text("g", Scalar::float(ScalarType::F64, 0.5)), "0.5");
        assert_eq!(
            text("g", Scalar::float(ScalarType::F64, 1234567.0)),
            "1.23457e+06"
        );
        assert_eq!(text("05d", Scalar::i32(-42)), "-0042");
        assert_eq!(text("x", Scalar::i32(-1)), "ffffffff");
        assert_eq!(text("#x", Scalar::i32(255)), "0xff");
    }
}
