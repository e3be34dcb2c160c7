//! Texts with a part to repeat: `START%%PART%%END`.

/// A text with a part to repeat.
pub struct Repetition<'t> {
    start: &'t str,
    part: &'t str,
    end: &'t str,
}

impl<'t> Repetition<'t> {
    /// Reads `START%%PART%%END`; what is missing is empty.
    pub fn new(text: &'t str) -> Self {
        let mut parts =
            text.splitn(3, "%%").map(Some).chain(std::iter::repeat(None)).map(Option::unwrap_or_default);
        let mut next = || parts.next().unwrap_or_default();
        Self { start: next(), part: next(), end: next() }
    }

    /// The number of repetitions that make a text of about `bytes`.
    pub fn count(&self, bytes: usize) -> usize {
        (bytes / self.part.len().max(1)).max(1)
    }

    /// The text with `count` repetitions. In the part, `{i}` is the number of the repetition, and `{address}` that number
    /// as an address in 10.0.0.0/8.
    pub fn text(&self, count: usize) -> String {
        let part = |number: usize| {
            let [.., b, c, d] = number.to_be_bytes();
            let part = self.part.replace("{i}", &number.to_string());
            part.replace("{address}", &format!("10.{b}.{c}.{d}"))
        };
        let parts: String = (0..count).map(part).collect();
        [self.start, &parts, self.end].concat()
    }
}
