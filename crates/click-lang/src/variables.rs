//! Variables: their scopes and their expansion.

use crate::config;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

/// The maximum depth of variables within values; deeper ones are not replaced. Stops: `$a` = `$a`.
const MAX_DEPTH: usize = 10;

/// The remaining cost of expansions in bytes, shared by all expansions of a compilation.
pub(crate) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    /// Makes a budget of `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: Cell::new(bytes) }
    }

    /// Subtracts `bytes`; returns false once the budget is used up.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let left = self.left.get().saturating_sub(bytes);
        self.left.set(left);
        left > 0
    }

    /// Whether the budget is used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.get() == 0
    }
}

/// The variables defined by one compound, in the scope of the surrounding compound.
#[derive(Default)]
pub(crate) struct Environment {
    /// The number of surrounding environments.
    pub(crate) depth: usize,
    values: BTreeMap<Rc<str>, Rc<str>>,
    parent: Option<Rc<Environment>>,
}

impl Environment {
    /// An empty environment inside `parent`.
    pub(crate) fn inside(parent: Option<Rc<Environment>>) -> Self {
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        Self { depth, values: BTreeMap::new(), parent }
    }

    /// The innermost of `environment` and its surroundings whose depth is less than `depth`.
    pub(crate) fn surrounding(environment: &Rc<Environment>, depth: usize) -> Option<Rc<Environment>> {
        let mut found = Some(environment);
        while let Some(environment) = found
            && environment.depth >= depth
        {
            found = environment.parent.as_ref();
        }
        found.cloned()
    }

    /// Sets a variable, replacing an earlier value.
    pub(crate) fn set(&mut self, name: Rc<str>, value: Rc<str>) {
        self.values.insert(name, value);
    }

    fn value(&self, name: &str) -> Option<&Rc<str>> {
        let mut environment = Some(self);
        while let Some(here) = environment {
            if let Some(value) = here.values.get(name) {
                return Some(value);
            }
            environment = here.parent.as_deref();
        }
        None
    }

    /// Replaces the variables in `text`: outside quotes by their values, in double quotes by their quoted values.
    ///
    /// `$name`, `${name}`, `${name[word]}`, `${name-default}` and `$(name)` are variables, except in single quotes, in
    /// comments and after a backslash in double quotes. Undefined variables are not replaced.
    pub(crate) fn expand<'t>(&self, text: &'t str, budget: &Budget) -> Cow<'t, str> {
        self.expand_at(text, budget, 0)
    }

    fn expand_at<'t>(&self, text: &'t str, budget: &Budget, depth: usize) -> Cow<'t, str> {
        if !text.contains('$') || depth > MAX_DEPTH || !budget.take(text.len()) {
            return Cow::Borrowed(text);
        }
        let bytes = text.as_bytes();
        let mut out = String::new();
        let (mut at, mut copied) = (0, 0);
        let mut quote = 0;
        let mut ends = Ends::default();
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quote == b'"' => at += 1,
                mark @ (b'"' | b'\'') if quote == 0 => quote = mark,
                mark if mark == quote => quote = 0,
                b'/' if quote == 0 && config::starts_comment(bytes, at) => {
                    at = config::skip_comment(bytes, at);
                    continue;
                }
                b'$' if quote != b'\'' => {
                    let Some((reference, end)) = Reference::find(text, at, &mut ends) else {
                        at += 1;
                        continue;
                    };
                    let replacement = self.replace(&reference, budget, depth);
                    if budget.is_empty() {
                        return Cow::Borrowed(text);
                    }
                    if let Some(replacement) = replacement {
                        out.push_str(&text[copied..at]);
                        copied = end;
                        if quote == b'"' {
                            let quoted = config::quote(replacement.as_bytes());
                            out.push_str(&quoted[1..quoted.len() - 1]);
                        } else {
                            out.push_str(&replacement);
                        }
                    }
                    at = end;
                    continue;
                }
                _ => (),
            }
            at += 1;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// The replacement for a reference; `None` if it is not replaced.
    fn replace(&self, reference: &Reference<'_>, budget: &Budget, depth: usize) -> Option<String> {
        let name = self.expand_at(reference.inner, budget, depth + 1);
        let changed = name != reference.inner;
        let parts = if reference.open == Some(b'{') { Parts::read(&name) } else { Parts::plain(&name) };
        let value = if let Some(value) = self.value(parts.name) {
            let value = self.expand_at(value, budget, depth + 1);
            match parts.word {
                Some(index) => {
                    budget.take(value.len());
                    Some(nth_word(&value, index).into())
                }
                None => Some(value.into_owned()),
            }
        } else if let Some(default) = parts.default {
            Some(self.expand_at(default, budget, depth + 1).into_owned())
        } else if changed {
            // The name itself contained variables, which are replaced.
            let (open, close) = if reference.open == Some(b'{') { ("${", "}") } else { ("$(", ")") };
            Some([open, &name, close].concat())
        } else {
            None
        };
        budget.take(value.as_ref().map_or(1, |value| value.len() + 1));
        value
    }
}

/// A reference to a variable in a text.
struct Reference<'t> {
    /// `{` or `(` if the name is enclosed.
    open: Option<u8>,
    /// The name, or the text inside the braces.
    inner: &'t str,
}

impl<'t> Reference<'t> {
    /// Parses the reference that begins with the `$` at `at`. Returns it and its end.
    fn find(text: &'t str, at: usize, ends: &mut Ends) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let start = at + 1;
        match *bytes.get(start)? {
            b'{' => {
                let end = ends.brace(text, start)?;
                Some((Self { open: Some(b'{'), inner: &text[start + 1..end] }, end + 1))
            }
            b'(' => {
                let end = ends.parenthesis(bytes, start + 1)?;
                Some((Self { open: Some(b'('), inner: &text[start + 1..end] }, end + 1))
            }
            b'?' | b'#' | b'$' => Some((Self { open: None, inner: &text[start..=start] }, start + 1)),
            byte if config::is_variable_byte(byte) => {
                let length =
                    bytes[start..].iter().take_while(|&&byte| config::is_variable_byte(byte)).count();
                Some((Self { open: None, inner: &text[start..start + length] }, start + length))
            }
            _ => None,
        }
    }
}

/// Finds the ends of references in a text, in linear time for all of them. Stops: a long run of `$(`, each of which would
/// search the whole text in vain.
#[derive(Default)]
struct Ends {
    /// Whether a search for a closing brace has reached the end of the text. Later ones would as well.
    no_brace: bool,
    /// For each byte and each state of quoting, the position of the parenthesis that closes the content that goes on there,
    /// or `NOWHERE`; the bytes from the end of the text on have none. Empty until a search has reached that end.
    closing: Vec<[u32; 3]>,
}

/// No position in a text.
const NOWHERE: u32 = u32::MAX;

impl Ends {
    /// The first closing brace from `at` on.
    fn brace(&mut self, text: &str, at: usize) -> Option<usize> {
        if self.no_brace {
            return None;
        }
        let found = text[at..].find('}');
        self.no_brace = found.is_none();
        Some(at + found?)
    }

    /// The closing parenthesis of the content that begins at `at`.
    fn parenthesis(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        if self.closing.is_empty() {
            let found = closing_parenthesis(bytes, at);
            if found.is_none() {
                self.closing = closing_parentheses(bytes);
            }
            return found;
        }
        let [unquoted, ..] = *self.closing.get(at)?;
        (unquoted != NOWHERE).then_some(unquoted as usize)
    }
}

/// What `closing_parenthesis` returns for every byte, if the content that begins there is not quoted, in double quotes, or
/// in single quotes.
fn closing_parentheses(bytes: &[u8]) -> Vec<[u32; 3]> {
    const UNQUOTED: usize = 0;
    const DOUBLE: usize = 1;
    const SINGLE: usize = 2;
    let mut closing = vec![[NOWHERE; 3]; bytes.len() + 2];
    for (at, byte) in bytes.iter().enumerate().rev() {
        let (next, after) = (closing[at + 1], closing[at + 2]);
        closing[at] = match byte {
            b'(' => {
                // The parenthesis that closes this one, and the one after that.
                let inner = closing.get(next[UNQUOTED] as usize + 1).filter(|_| next[UNQUOTED] != NOWHERE);
                [inner.map_or(NOWHERE, |outer| outer[UNQUOTED]), next[DOUBLE], next[SINGLE]]
            }
            b')' => [u32::try_from(at).unwrap_or(NOWHERE), next[DOUBLE], next[SINGLE]],
            b'"' => [next[DOUBLE], next[UNQUOTED], next[SINGLE]],
            b'\'' => [next[SINGLE], next[DOUBLE], next[UNQUOTED]],
            b'\\' => [after[UNQUOTED], after[DOUBLE], next[SINGLE]],
            _ => next,
        };
    }
    closing
}

/// The closing parenthesis of the content that begins at `at`.
fn closing_parenthesis(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut level = 1_usize;
    let mut quote = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' if quote == 0 => level += 1,
            b')' if quote == 0 => level -= 1,
            b'"' | b'\'' if quote == 0 => quote = byte,
            b'"' | b'\'' if quote == byte => quote = 0,
            b'\\' if quote != b'\'' => at += 1,
            _ => (),
        }
        if level == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The parts of `${...}`: `name`, `name[word]`, `name-default`.
struct Parts<'t> {
    name: &'t str,
    word: Option<usize>,
    default: Option<&'t str>,
}

impl<'t> Parts<'t> {
    fn plain(name: &'t str) -> Self {
        Self { name, word: None, default: None }
    }

    fn read(inner: &'t str) -> Self {
        let inner = skip_space(inner);
        let length = inner.bytes().take_while(|&byte| config::is_variable_byte(byte)).count();
        let (name, rest) = inner.split_at(length);
        let mut parts = Self::plain(name);
        let mut rest = skip_space(rest);
        if let Some(index) = rest.strip_prefix('[').map(skip_space) {
            let digits = index.bytes().take_while(u8::is_ascii_digit).count();
            if let Some(after) = index[digits..].strip_prefix(']') {
                parts.word = index[..digits].parse().ok();
                rest = skip_space(after);
            }
        }
        parts.default = rest.strip_prefix('-');
        parts
    }
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii() && config::is_space(c as u8))
}

/// The word at `index`, counted from 0; empty if there are fewer.
fn nth_word(text: &str, index: usize) -> &str {
    let mut rest = text;
    for _ in 0..index {
        if rest.is_empty() {
            break;
        }
        rest = config::first_word(rest).1;
    }
    config::first_word(rest).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let mut outer = Environment::inside(None);
        outer.set("o".into(), "outer $a".into());
        outer.set("a".into(), "hidden".into());
        let mut inner = Environment::inside(Some(Rc::new(outer)));
        for (name, value) in
            [("a", "A B C"), ("q", "say \"hi\" $$"), ("n", "2"), ("loop", "$loop x"), ("e", "")]
        {
            inner.set(name.into(), value.into());
        }
        inner
    }

    #[test]
    fn variables_are_replaced() {
        let check = |text: &str, expected: &str| {
            assert_eq!(environment().expand(text, &Budget::new(10_000)), expected, "{text:?}");
        };
        check("", "");
        check("$a, ${a}, $(a)", "A B C, A B C, A B C");
        check("'$a' \"$a\" \"\\$a\" /* $a */ $a", "'$a' \"A B C\" \"\\$a\" /* $a */ A B C");
        check("\"$q\"", "\"say \\\"hi\\\" \\$\\$\"");
        check("${a[0]}${a[ 2]}${a[3]}", "AC");
        check("${a[$n]}", "C");
        check("$unknown ${unknown} $", "$unknown ${unknown} $");
        check("${unknown-$a}", "A B C");
        check("${x$n}", "${x2}");
        check("$(x$n)", "$(x2)");
        check("$o", "outer A B C");
        check("$a$a", "A B CA B C");
        check("[$e]", "[]");
        check("${a", "${a");
        check("é$aé", "éA B Cé");
    }

    #[test]
    fn all_closing_parentheses_are_found_at_once() {
        let bytes = b"()\\\"'a";
        for number in 0..6_usize.pow(6) {
            let text: Vec<u8> =
                (0..6).scan(number, |rest, _| Some(bytes[core::mem::replace(rest, *rest / 6) % 6])).collect();
            let closing = closing_parentheses(&text);
            for (at, known) in closing.iter().enumerate().take(text.len() + 1) {
                let found = closing_parenthesis(&text, at).map_or(NOWHERE, |end| end as u32);
                assert_eq!(known[0], found, "{at} in {text:?}");
            }
        }
    }

    #[test]
    fn expansion_ends() {
        let budget = Budget::new(10_000);
        let text = environment().expand("$loop", &budget).into_owned();
        assert_eq!((text, budget.is_empty()), (String::from("$loop") + &" x".repeat(11), false));
        let mut bomb = Environment::inside(None);
        for level in 0..9_u8 {
            let value = alloc::format!("$v{}", level + 1).repeat(1000);
            bomb.set(alloc::format!("v{level}").into(), value.into());
        }
        let budget = Budget::new(1_000_000);
        bomb.expand("$v0", &budget);
        assert!(budget.is_empty());
    }
}
