//! The lexer. Every byte of the text belongs to exactly one token.

use crate::config;
use crate::steps::pause;
use alloc::borrow::Cow;
use alloc::string::String;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Spaces and line ends.
    Space,
    /// `// ...` with its line end.
    LineComment,
    /// `/* ... */`.
    BlockComment,
    /// `# LINE "FILE"` at the beginning of a line, without its line end; or any other line that begins with `#`.
    Directive,
    /// A name: letters, digits, `_`, `@`, and `/` between them.
    Identifier,
    /// `$name`.
    Variable,
    /// `->`
    Arrow,
    /// `=>`
    DoubleArrow,
    /// `::`
    DoubleColon,
    /// `||`
    DoubleBar,
    /// `...`
    Dots,
    /// `elementclass`
    ElementClass,
    /// `require`
    Require,
    /// `provide`
    Provide,
    /// `define`
    Define,
    /// The text between the parentheses of a configuration.
    Config,
    /// Any other single character, valid punctuation or not.
    Character,
    /// The rest of the text beyond the token limit.
    Rest,
    /// The end of the text.
    End,
}

impl TokenKind {
    /// Whether the parser skips it.
    pub fn is_trivia(self) -> bool {
        matches!(self, Self::Space | Self::LineComment | Self::BlockComment | Self::Directive)
    }
}

/// A token's kind and start. It ends where the next one begins.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Offset of its first byte.
    pub start: u32,
}

/// A line directive: line numbers restart after it.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    /// Offset of the `#`.
    pub(crate) at: usize,
    /// The number of the line after the directive.
    pub(crate) line: u32,
    /// The file name as quoted in the text; `None` if the directive has none.
    pub(crate) file: Option<String>,
}

/// Reads tokens on demand. The parser tells it where a configuration begins.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// Starts at the beginning of `text`.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads the next token.
    pub(crate) fn next(&mut self) -> Token {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let (kind, end) = match bytes.get(start) {
            None => (TokenKind::End, start),
            Some(&byte) if config::is_space(byte) => (TokenKind::Space, skip_space(bytes, start)),
            Some(b'/') if config::starts_comment(bytes, start) => {
                let line = bytes[start + 1] == b'/';
                let kind = if line { TokenKind::LineComment } else { TokenKind::BlockComment };
                (kind, config::skip_comment(bytes, start))
            }
            Some(b'#') if at_line_start(bytes, start) => (TokenKind::Directive, directive(bytes, start).0),
            Some(&byte) if is_word(byte) => {
                let end = skip_word(bytes, start);
                (word_kind(&bytes[start..end]), end)
            }
            Some(b'$') => {
                let name = bytes[start + 1..].iter().take_while(|&&byte| config::is_variable_byte(byte));
                (TokenKind::Variable, start + 1 + name.count())
            }
            Some(_) => self.symbol(start),
        };
        self.at = end;
        Token { kind, start: start as u32 }
    }

    fn symbol(&self, start: usize) -> (TokenKind, usize) {
        let rest = &self.text[start..];
        let known = [
            ("->", TokenKind::Arrow),
            ("=>", TokenKind::DoubleArrow),
            ("::", TokenKind::DoubleColon),
            ("||", TokenKind::DoubleBar),
            ("...", TokenKind::Dots),
        ];
        for (symbol, kind) in known {
            if rest.starts_with(symbol) {
                return (kind, start + symbol.len());
            }
        }
        let length = rest.chars().next().map_or(0, char::len_utf8);
        (TokenKind::Character, start + length)
    }

    /// Reads a configuration, in steps, up to its closing parenthesis, or to the end of the text.
    pub(crate) async fn config(&mut self) -> Token {
        let start = self.at;
        let mut scan = ConfigScan { at: start, depth: 1 };
        while !scan.go_on(self.text.as_bytes(), BYTES_A_STEP, &mut |_, _| ()) {
            pause().await;
        }
        self.at = scan.at;
        Token { kind: TokenKind::Config, start: start as u32 }
    }

    /// Reads the rest of the text as one token.
    pub(crate) fn rest(&mut self) -> Token {
        let start = self.at;
        self.at = self.text.len();
        Token { kind: TokenKind::Rest, start: start as u32 }
    }

    /// Offset of the next token.
    pub(crate) fn position(&self) -> usize {
        self.at
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@'
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| config::is_space(byte)) {
        at += 1;
    }
    at
}

fn skip_word(bytes: &[u8], mut at: usize) -> usize {
    loop {
        while bytes.get(at).is_some_and(|&byte| is_word(byte)) {
            at += 1;
        }
        let joined = bytes.get(at) == Some(&b'/') && bytes.get(at + 1).is_some_and(|&byte| is_word(byte));
        if !joined {
            return at;
        }
        at += 1;
    }
}

fn word_kind(word: &[u8]) -> TokenKind {
    match word {
        b"elementclass" => TokenKind::ElementClass,
        b"require" => TokenKind::Require,
        b"provide" => TokenKind::Provide,
        b"define" => TokenKind::Define,
        _ => TokenKind::Identifier,
    }
}

fn at_line_start(bytes: &[u8], at: usize) -> bool {
    at == 0 || matches!(bytes[at - 1], b'\n' | b'\r')
}

/// The bytes that mean something in a configuration.
static IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"()#/\"'\\";
    let mut index = 0;
    while index < special.len() {
        table[special[index] as usize] = true;
        index += 1;
    }
    table
};

/// Bytes of a configuration that are read in a step, in about ten microseconds.
const BYTES_A_STEP: usize = 1 << 14;

/// The search for the end of a configuration.
struct ConfigScan {
    at: usize,
    depth: usize,
}

impl ConfigScan {
    /// Reads about so many bytes more. Calls `found` with the bounds of each line directive. Returns whether it is at the end.
    fn go_on(&mut self, bytes: &[u8], count: usize, found: &mut dyn FnMut(usize, usize)) -> bool {
        let limit = bytes.len().min(self.at.saturating_add(count));
        let mut at = self.at;
        loop {
            // Almost all bytes are skipped here.
            let rest = bytes.get(at..limit).unwrap_or_default();
            at += rest.iter().take_while(|&&byte| !IS_SPECIAL[usize::from(byte)]).count();
            self.at = at;
            if at >= limit {
                return at >= bytes.len();
            }
            match bytes[at] {
                b'(' => self.depth += 1,
                b')' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return true;
                    }
                }
                b'#' if at > 0 && at_line_start(bytes, at) => {
                    let end = directive(bytes, at).0;
                    found(at, end);
                    at = end;
                    continue;
                }
                b'/' if config::starts_comment(bytes, at) => {
                    at = config::skip_comment(bytes, at);
                    continue;
                }
                b'"' | b'\'' => {
                    at = config::skip_quoted(bytes, at);
                    continue;
                }
                b'\\' if bytes.get(at + 1) == Some(&b'<') => {
                    at = config::skip_hex(bytes, at);
                    continue;
                }
                _ => (),
            }
            at += 1;
        }
    }
}

/// Finds the line directives of the configuration that begins at `at`.
fn scan_directives(bytes: &[u8], at: usize, mut found: impl FnMut(usize, usize)) {
    ConfigScan { at, depth: 1 }.go_on(bytes, usize::MAX, &mut found);
}

/// The text of a configuration without line directives.
pub(crate) fn config_text(raw: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    if raw.contains('#') {
        scan_directives(raw.as_bytes(), 0, |start, end| {
            out.push_str(&raw[copied..start]);
            copied = end;
        });
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    out.push_str(&raw[copied..]);
    Cow::Owned(out)
}

/// Finds the line directives in the configuration of `text` from `offset` to `end`.
pub(crate) fn config_directives(text: &str, offset: usize, end: usize, mut found: impl FnMut(usize)) {
    if text[offset..end].contains('#') {
        scan_directives(&text.as_bytes()[..end], offset, |start, _| found(start));
    }
}

/// Reads the line that begins with `#` at `at`. Returns its end (before the line end) and the directive; `None` if it
/// is not a line directive.
pub(crate) fn directive(bytes: &[u8], at: usize) -> (usize, Option<Directive>) {
    let line_end =
        bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(bytes.len(), |n| at + n);
    let line = &bytes[at + 1..line_end];
    let mut rest = line.trim_ascii_start();
    if let Some(after) = rest.strip_prefix(b"line")
        && after.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
    {
        rest = after.trim_ascii_start();
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (line_end, None);
    }
    let add = |number: u32, digit: &u8| number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    let number = rest[..digits].iter().fold(0, add);
    let rest = rest[digits..].trim_ascii_start();
    let file = (rest.first() == Some(&b'"')).then(|| {
        let quoted = &rest[..config::skip_quoted(rest, 0)];
        String::from_utf8_lossy(&config::unquote(&String::from_utf8_lossy(quoted))).into_owned()
    });
    (line_end, Some(Directive { at, line: number, file }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::complete;
    use alloc::vec::Vec;

    #[test]
    fn tokens_are_distinguished() {
        use TokenKind::*;
        let check = |text: &str, expected: &[TokenKind]| {
            let mut lexer = Lexer::new(text);
            let mut kinds = Vec::new();
            loop {
                let kind = lexer.next().kind;
                if kind == End {
                    break;
                }
                kinds.push(kind);
            }
            assert_eq!(kinds, expected, "{text:?}");
        };
        check("a/b@1 ::X", &[Identifier, Space, DoubleColon, Identifier]);
        check("->=>||...$x-", &[Arrow, DoubleArrow, DoubleBar, Dots, Variable, Character]);
        check("a//b\nc/*d*/", &[Identifier, LineComment, Identifier, BlockComment]);
        check("a/ b /", &[Identifier, Character, Space, Identifier, Space, Character]);
        check("#x\n # 1", &[Directive, Space, Character, Space, Identifier]);
        check("require requires é", &[Require, Space, Identifier, Space, Character]);
        check("/*", &[BlockComment]);
    }

    #[test]
    fn a_configuration_ends_at_its_parenthesis() {
        let check = |text: &str, expected: &str| {
            let mut lexer = Lexer::new(text);
            let token = complete(lexer.config());
            assert_eq!(&text[token.start as usize..lexer.position()], expected);
        };
        check("a(b)c) d", "a(b)c");
        check("\")\" ')' \\<)> /*)*/ //)\n) x", "\")\" ')' \\<)> /*)*/ //)\n");
        check("'(", "'(");
        check("\"\\\")\")", "\"\\\")\"");
    }

    #[test]
    fn directives_are_read() {
        let check = |text: &str, expected: Option<(u32, Option<&str>)>| {
            let read = directive(text.as_bytes(), 0).1;
            let read = read.as_ref().map(|directive| (directive.line, directive.file.as_deref()));
            assert_eq!(read, expected, "{text:?}");
        };
        check("# 12 \"a.click\" 2\n", Some((12, Some("a.click"))));
        check("#line 3", Some((3, None)));
        check("#3 \"\"", Some((3, Some(""))));
        check("#include", None);
        check("# 99999999999999 \"x", Some((u32::MAX, Some("x"))));
        assert_eq!(config_text("a\n# 3 \"x\"\nb"), "a\n\nb");
    }
}
