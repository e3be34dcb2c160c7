//! The functions of scripts: arithmetic, comparison, logic, strings. Each is a read handler with a parameter.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::cmp::Ordering;

use element::number_format;
use element::text::{next_word, unquote, unquote_bytes};
use element::{HandlerError, Setup, arguments::FromArgument};

use super::sprintf::sprintf;

/// A number in a script.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn parse(word: &str, setup: &Setup) -> Option<Number> {
        let integer = i64::from_argument(word, setup).ok().map(Number::Integer);
        integer.or_else(|| real(word).map(Number::Real))
    }

    fn real(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Real(real) => real,
        }
    }
}

impl core::fmt::Display for Number {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Number::Integer(integer) => write!(f, "{integer}"),
            Number::Real(real) => f.write_str(&number_format::general(*real)),
        }
    }
}

/// Parses a floating-point number as C does, including signs, infinities and hexadecimal, unless it is out of range.
fn real(word: &str) -> Option<f64> {
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok().map(|number| number as f64);
    }
    let real: f64 = word.parse().ok()?;
    let is_named = word.bytes().any(|letter| matches!(letter, b'n' | b'N'));
    (real.is_finite() || is_named).then_some(real)
}

/// Parses two numbers as the same type.
fn numbers(one: &str, other: &str, setup: &Setup) -> Option<(Number, Number)> {
    let integer = |word| i64::from_argument(word, setup).ok().map(Number::Integer);
    let both = integer(one).zip(integer(other));
    both.or_else(|| Some((Number::Real(real(one)?), Number::Real(real(other)?))))
}

/// Calls the function `name`; `None` if it does not exist.
pub(super) fn call(name: &str, parameter: &str, setup: &Setup) -> Option<Result<String, HandlerError>> {
    Some(match name {
        "add" | "sub" | "mul" | "div" | "idiv" | "min" | "max" => arithmetic(name, parameter, setup),
        "mod" | "rem" => remainder(name, parameter, setup),
        "neg" | "abs" => sign(name, parameter, setup),
        "eq" | "ne" | "lt" | "gt" | "le" | "ge" => compare(name, parameter, setup),
        "not" => boolean(parameter.trim(), setup).map(|value| (!value).to_string()),
        "and" | "or" | "nand" | "nor" => logic(name, parameter, setup),
        "if" => choose(parameter, setup),
        "in" => Ok(contains(parameter).to_string()),
        "first" => Ok(next_word(&mut &*parameter).unwrap_or("").to_owned()),
        "length" => Ok(parameter.len().to_string()),
        "unquote" => Ok(unquote(parameter)),
        "sprintf" => sprintf(parameter, setup),
        "htons" | "ntohs" => integer(parameter, setup).map(|value| (value as u16).swap_bytes().to_string()),
        "htonl" | "ntohl" => integer(parameter, setup).map(|value| (value as u32).swap_bytes().to_string()),
        _ => return None,
    })
}

fn syntax() -> HandlerError {
    HandlerError::new("syntax error")
}

/// Parses an integer; one out of range saturates.
fn integer(parameter: &str, setup: &Setup) -> Result<i32, HandlerError> {
    let number = i64::from_argument(parameter.trim(), setup).map_err(|_| syntax())?;
    Ok(number.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

fn boolean(word: &str, setup: &Setup) -> Result<bool, HandlerError> {
    bool::from_argument(word, setup).map_err(|_| syntax())
}

fn arithmetic(name: &str, parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let neutral = if matches!(name, "add" | "sub") { 0 } else { 1 };
    let divides = matches!(name, "div" | "idiv");
    let mut sum: Option<Number> = None;
    let mut rest = parameter;
    while let Some(word) = next_word(&mut rest) {
        let next = match sum {
            // After a floating-point number, all further ones are floating-point.
            Some(Number::Real(_)) => real(word).map(Number::Real),
            None if divides => real(word).map(Number::Real),
            _ => Number::parse(word, setup),
        };
        let next = next.ok_or_else(|| HandlerError::new("expected list of numbers"))?;
        sum = Some(match sum {
            None => next,
            Some(sum) => combine(name, sum, next),
        });
    }
    let sum = sum.unwrap_or(Number::Integer(neutral));
    Ok(if name == "idiv" { Number::Integer(sum.real() as i64).to_string() } else { sum.to_string() })
}

fn combine(name: &str, sum: Number, next: Number) -> Number {
    if let (Number::Integer(one), Number::Integer(other)) = (sum, next) {
        return Number::Integer(match name {
            "add" => one.wrapping_add(other),
            "sub" => one.wrapping_sub(other),
            "mul" => one.wrapping_mul(other),
            "min" => one.min(other),
            _ => one.max(other),
        });
    }
    let (one, other) = (sum.real(), next.real());
    Number::Real(match name {
        "add" => one + other,
        "sub" => one - other,
        "mul" => one * other,
        "min" => one.min(other),
        "max" => one.max(other),
        _ => one / other,
    })
}

/// Splits off exactly two words.
fn two(parameter: &str) -> Option<(&str, &str)> {
    let mut rest = parameter;
    let pair = (next_word(&mut rest)?, next_word(&mut rest)?);
    rest.trim().is_empty().then_some(pair)
}

fn remainder(name: &str, parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let expected = || HandlerError::new("expected two numbers");
    let (one, other) = two(parameter).ok_or_else(expected)?;
    match numbers(one, other, setup).ok_or_else(expected)? {
        (Number::Integer(_), Number::Integer(0)) => Err(HandlerError::new("division by zero")),
        (Number::Integer(one), Number::Integer(other)) => Ok(one.wrapping_rem(other).to_string()),
        _ if name == "mod" => Err(expected()),
        (one, other) => Ok(Number::Real(one.real() % other.real()).to_string()),
    }
}

fn sign(name: &str, parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let value =
        Number::parse(parameter.trim(), setup).ok_or_else(|| HandlerError::new("expected one number"))?;
    Ok(match value {
        Number::Integer(value) if name == "neg" || value < 0 => value.wrapping_neg().to_string(),
        Number::Integer(value) => value.to_string(),
        Number::Real(value) if name == "neg" || value < 0.0 => Number::Real(-value).to_string(),
        Number::Real(value) => Number::Real(value).to_string(),
    })
}

fn compare(name: &str, parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let (one, other) = two(parameter).ok_or_else(|| HandlerError::new("expected two numbers"))?;
    let order = match numbers(one, other, setup) {
        Some((Number::Integer(one), Number::Integer(other))) => one.cmp(&other),
        // NaN counts as greater than any number, as in Click's chain of comparisons.
        Some((one, other)) => one.real().partial_cmp(&other.real()).unwrap_or(Ordering::Greater),
        None => unquote_bytes(one).cmp(&unquote_bytes(other)),
    };
    let holds = match name {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" => order.is_lt(),
        "gt" => order.is_gt(),
        "le" => order.is_le(),
        _ => order.is_ge(),
    };
    Ok(holds.to_string())
}

fn logic(name: &str, parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let all = matches!(name, "and" | "nand");
    let mut value = all;
    let mut rest = parameter;
    while value == all
        && let Some(word) = next_word(&mut rest)
    {
        let next = boolean(word, setup)?;
        // As in Click, `nand` does not look for a false operand either, and is never true.
        value = next || name == "nand";
    }
    Ok((value != matches!(name, "nand" | "nor")).to_string())
}

fn choose(parameter: &str, setup: &Setup) -> Result<String, HandlerError> {
    let mut rest = parameter;
    let condition = boolean(next_word(&mut rest).unwrap_or(""), setup)?;
    let first = next_word(&mut rest).unwrap_or("");
    Ok((if condition { first } else { next_word(&mut rest).unwrap_or("") }).to_owned())
}

fn contains(parameter: &str) -> bool {
    let mut rest = parameter;
    let wanted = next_word(&mut rest).map(unquote_bytes).filter(|wanted| !wanted.is_empty());
    let Some(wanted) = wanted else { return false };
    core::iter::from_fn(|| next_word(&mut rest)).any(|word| unquote_bytes(word) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::test_environment::TestEnvironment;
    use alloc::format;
    use element::Names;

    fn check(name: &str, parameter: &str, expected: &str) {
        let names = Names::new();
        let setup = Setup::new("s", (0, 0), &names, &TestEnvironment);
        let answer = call(name, parameter, &setup).expect("a function");
        assert_eq!(answer.unwrap_or_else(|error| format!("! {error}")), expected, "{name} {parameter}");
    }

    #[test]
    fn counts() {
        check("add", "10 5 2", "17");
        check("add", "1 0.5", "1.5");
        check("sub", "10 5 2", "3");
        check("div", "7 2", "3.5");
        check("idiv", "7 2", "3");
        check("max", "5 10 2", "10");
        check("mod", "7 3", "1");
        check("mod", "7 0", "! division by zero");
        check("rem", "7.5 2", "1.5");
        check("neg", "-9223372036854775808", "-9223372036854775808");
        check("abs", "-3", "3");
        check("mul", "", "1");
        check("add", "x", "! expected list of numbers");
        check("htons", "1", "256");
    }

    #[test]
    fn compares_and_decides() {
        check("eq", "10 0xA", "true");
        check("le", "9 8", "false");
        check("eq", "10x 10x", "true");
        check("lt", "abc \"abd\"", "true");
        check("and", "true 1 yes", "true");
        check("nor", "false 0", "true");
        check("if", "$x a b", "! syntax error");
        check("if", "false a b", "b");
        check("in", "foo bar foo", "true");
        check("first", "  a b", "a");
        check("sprintf", "\"%05x|%-4d|%s\" 127 3 'a b'", "0007f|3   |a b");
    }
}
