//! The `sprintf` function of scripts.

use alloc::format;
use alloc::string::String;

use element::text::{next_word, unquote};
use element::{HandlerError, Setup, arguments::FromArgument};

/// Maximum field width and precision, so that a script can't create unbounded text.
const MAX_WIDTH: usize = 4096;

/// A conversion: `%-08.3x`.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    width: usize,
    precision: Option<usize>,
    short: bool,
}

/// Formats a parameter: the first word is the format, the others are its arguments.
pub(super) fn sprintf(parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let syntax = || HandlerError::new("syntax error");
    let mut rest = parameter;
    let format = unquote(next_word(&mut rest).unwrap_or(""));
    let mut out = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let mut conversion = Conversion::default();
        while let Some(flag) = letters.next_if(|flag| "-0+ #".contains(*flag)) {
            match flag {
                '-' => conversion.left = true,
                '0' => conversion.zero = true,
                '+' => conversion.plus = true,
                ' ' => conversion.space = true,
                _ => conversion.alternative = true,
            }
        }
        let mut size =
            |letters: &mut core::iter::Peekable<core::str::Chars>| -> Result<Option<i64>, HandlerError> {
                if letters.next_if_eq(&'*').is_some() {
                    let word = next_word(&mut rest).ok_or_else(syntax)?;
                    return i64::from_argument(word, setup).map(Some).map_err(|_| syntax());
                }
                let mut size = None;
                while let Some(digit) =
                    letters.next_if(char::is_ascii_digit).and_then(|digit| digit.to_digit(10))
                {
                    size = Some((size.unwrap_or(0) * 10 + i64::from(digit)).min(MAX_WIDTH as i64));
                }
                Ok(size)
            };
        let width = size(&mut letters)?.unwrap_or(0);
        conversion.left |= width < 0;
        conversion.width = (width.unsigned_abs() as usize).min(MAX_WIDTH);
        if letters.next_if_eq(&'.').is_some() {
            let precision = size(&mut letters)?.unwrap_or(0);
            conversion.precision = Some(usize::try_from(precision).map_err(|_| syntax())?.min(MAX_WIDTH));
        }
        while let Some(length) = letters.next_if(|length| "hlqL".contains(*length)) {
            conversion.short = length == 'h';
        }
        let kind = letters.next().ok_or_else(syntax)?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let word = next_word(&mut rest).ok_or_else(syntax)?;
        match kind {
            'd' | 'i' => {
                let value = i64::from_argument(word, setup).map_err(|_| syntax())?;
                let value = if conversion.short { i64::from(value as i16) } else { value };
                let sign = if value < 0 { "-" } else { conversion.sign() };
                conversion.number(sign, &format!("{}", value.unsigned_abs()), &mut out);
            }
            'u' | 'x' | 'X' | 'o' => {
                let value = u64::from_argument(word, setup).map_err(|_| syntax())?;
                let value = if conversion.short { u64::from(value as u16) } else { value };
                let (prefix, digits) = match kind {
                    'x' => ("0x", format!("{value:x}")),
                    'X' => ("0X", format!("{value:X}")),
                    'o' => ("0", format!("{value:o}")),
                    _ => ("", format!("{value}")),
                };
                let prefix = if conversion.alternative && value != 0 { prefix } else { "" };
                conversion.number(prefix, &digits, &mut out);
            }
            's' => {
                let text = unquote(word);
                let most = conversion.precision.unwrap_or(usize::MAX);
                let text: String = text.chars().take(most).collect();
                conversion.pad(&text, &mut out);
            }
            _ => return Err(syntax()),
        }
    }
    if rest.trim().is_empty() { Ok(out) } else { Err(syntax()) }
}

impl Conversion {
    fn sign(&self) -> &'static str {
        if self.plus {
            "+"
        } else if self.space {
            " "
        } else {
            ""
        }
    }

    fn number(&self, prefix: &str, digits: &str, out: &mut String) {
        let least = match self.precision {
            Some(precision) => precision,
            None if self.zero && !self.left => self.width.saturating_sub(prefix.len()),
            None => 0,
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        self.pad(&format!("{prefix}{zeros}{digits}"), out);
    }

    fn pad(&self, text: &str, out: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        if self.left {
            out.push_str(text);
        }
        out.extend(core::iter::repeat_n(' ', missing));
        if !self.left {
            out.push_str(text);
        }
    }
}
