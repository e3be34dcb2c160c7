//! Expansion of `$variables` in the text of a script, as in Click.

use alloc::string::String;

use element::text;

/// Maximum nesting of expansions, for a variable that contains itself.
const MAX_DEPTH: usize = 10;
/// Maximum bytes of an expanded text, for a script that doubles a variable in a loop.
const MAX_TEXT: usize = 1 << 20;
/// Maximum bytes of a text searched in vain for the ends of references, because a text of nothing but opening brackets
/// would need quadratic time. Beyond it, the rest is not expanded.
const MAX_SEARCH: usize = 16 << 20;

/// Provides the values of variables.
pub(super) trait Values {
    /// The value of a variable, or of a handler call if `call`; `None` leaves the reference unexpanded.
    fn value(&mut self, name: &str, call: bool) -> Option<String>;
}

/// Replaces `$name`, `${name}` and `$(handler arguments)` outside single quotes and comments. Values are escaped inside
/// double quotes, and with `quoted` they are quoted outside as well. A text that starts with references without values
/// is left unchanged, which Click does not consider an expansion.
pub(super) fn expand(source: &str, values: &mut dyn Values, quoted: bool) -> String {
    expand_at(source, values, quoted, 0)
}

fn expand_at(source: &str, values: &mut dyn Values, quoted: bool, depth: usize) -> String {
    if !source.contains('$') || depth > MAX_DEPTH {
        return source.into();
    }
    let bytes = source.as_bytes();
    let (mut out, mut done, mut at, mut quote) = (String::new(), 0, 0, 0u8);
    let mut searched = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' => at += 1,
            b'\'' | b'"' if quote == 0 => quote = byte,
            b'\'' | b'"' if quote == byte => quote = 0,
            b'/' if quote == 0 => at = text::comment_end(source, at).map_or(at, |end| end - 1),
            b'$' if quote != b'\'' => {
                let Some(reference) = Reference::parse(source, at) else {
                    if let Some(b'(' | b'{') = bytes.get(at + 1) {
                        searched += bytes.len() - at;
                    }
                    if searched > MAX_SEARCH {
                        break;
                    }
                    at += 1;
                    continue;
                };
                out.push_str(source.get(done..at).unwrap_or(""));
                done = reference.end;
                let nested = reference.name.contains('$');
                let name = if nested {
                    expand_at(reference.name, values, false, depth + 1)
                } else {
                    reference.name.into()
                };
                match values.value(&name, reference.call) {
                    Some(value) if quote == b'"' => out.push_str(inner(&text::quote(value.as_bytes()))),
                    Some(value) if quoted && quote == 0 => {
                        out.push('"');
                        out.push_str(inner(&text::quote(value.as_bytes())));
                        out.push('"');
                    }
                    Some(value) => out.push_str(&value),
                    None if nested => {
                        out.push_str(source.get(at..at + 2).unwrap_or(""));
                        out.push_str(&name);
                        out.push_str(source.get(reference.end - 1..reference.end).unwrap_or(""));
                    }
                    None => out.push_str(source.get(at..reference.end).unwrap_or("")),
                }
                at = reference.end;
                if out.len() > MAX_TEXT {
                    break;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if out.is_empty() {
        return source.into();
    }
    out.push_str(source.get(done..).unwrap_or(""));
    let mut end = out.len().min(MAX_TEXT);
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out
}

/// The content of double quotes.
fn inner(quoted: &str) -> &str {
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted)
}

/// A reference to a variable or handler.
struct Reference<'t> {
    name: &'t str,
    call: bool,
    end: usize,
}

impl<'t> Reference<'t> {
    /// Parses the reference whose `$` is at `at`.
    fn parse(source: &'t str, at: usize) -> Option<Reference<'t>> {
        let rest = source.get(at + 1..)?;
        match rest.bytes().next()? {
            b'{' => {
                let length = rest.find('}')?;
                Some(Reference { name: rest.get(1..length)?, call: false, end: at + 1 + length + 1 })
            }
            b'(' => {
                let length = closing(rest.as_bytes())?;
                Some(Reference { name: rest.get(1..length)?, call: true, end: at + 1 + length + 1 })
            }
            b'?' | b'#' | b'$' => Some(Reference { name: rest.get(..1)?, call: false, end: at + 2 }),
            first if first.is_ascii_alphanumeric() || first == b'_' => {
                let length =
                    rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                Some(Reference { name: rest.get(..length)?, call: false, end: at + 1 + length })
            }
            _ => None,
        }
    }
}

/// Offset of the parenthesis that closes the one at the start.
fn closing(bytes: &[u8]) -> Option<usize> {
    let (mut level, mut quote, mut at) = (0, 0u8, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' if quote == 0 => level += 1,
            b')' if quote == 0 => {
                level -= 1;
                if level == 0 {
                    return Some(at);
                }
            }
            b'"' | b'\'' if quote == 0 => quote = byte,
            b'"' | b'\'' if quote == byte => quote = 0,
            b'\\' if quote != b'\'' => at += 1,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    struct Named;

    impl Values for Named {
        fn value(&mut self, name: &str, call: bool) -> Option<String> {
            match (name, call) {
                ("x", false) => Some("1 2".into()),
                ("q", false) => Some("\"in\"".into()),
                ("e", false) => Some(String::new()),
                (_, true) => Some(format!("<{name}>")),
                _ => None,
            }
        }
    }

    #[test]
    fn expands_as_click_does() {
        let check = |source: &str, expected: &str| {
            assert_eq!(expand(source, &mut Named, false), expected, "{source}")
        };
        check("$x ${x} $y", "1 2 1 2 $y");
        check("'$x' \"$q\"", "'$x' \"\\\"in\\\"\"");
        check("$(add $x (3))", "<add 1 2 (3)>");
        check("$(open", "$(open");
        check("a$", "a$");
        check("$e$e b", "$e$e b");
        check("a $e", "a ");
        check("${$x}", "${1 2}");
        check("a /* $x */ $x", "a /* $x */ 1 2");
        check("\"\\$x\"", "\"\\$x\"");
        assert_eq!(expand("$x", &mut Named, true), "\"1 2\"");
    }

    #[test]
    fn unterminated_references_are_bounded() {
        for beginning in ["$(", "${"] {
            // Too many to search for the end of each, which would take hours.
            let text = beginning.repeat(1 << 21);
            assert!(expand(&text, &mut Named, false) == text);
        }
    }
}
