//! Limits on the cost of compiling a configuration. Each names the text that would exceed it.

/// The limits of one compilation. The defaults are far above the needs of any real configuration.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one source text. Stops: an endless file.
    pub source_bytes: usize,
    /// Tokens of one source text. Stops: a hundred megabytes of semicolons, each of which takes a token's memory.
    pub tokens: usize,
    /// Nesting of `{ ... }` and `( ... )` in the text. Stops: a long run of opening braces that exhausts the stack.
    pub nesting: usize,
    /// Nested compounds after expansion. Stops: a long chain of classes, each of which uses the one before.
    pub expansion_depth: usize,
    /// Elements after expansion. Stops: classes that each use the previous one twice (2^n elements).
    pub elements: usize,
    /// Connections, before and after expansion. Stops: many outputs joined to many inputs through compounds (n^k).
    pub connections: usize,
    /// Highest port number. Stops: `[0-4294967295]`.
    pub port: usize,
    /// Steps taken through the ports of compounds and groups. Stops: long chains of empty compounds that many sources
    /// enter at every link (n^2 steps for n connections).
    pub tunnel_steps: usize,
    /// Total bytes of names, configurations and variables. Stops: `$a` = `$b$b`, `$b` = `$c$c` and so on, and long
    /// names repeated at every level of nesting.
    pub expanded_bytes: usize,
    /// Libraries read. Stops: libraries that keep requiring new ones.
    pub libraries: usize,
    /// Diagnostics kept. Stops: a text with an error in every byte.
    pub diagnostics: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes: 256 << 20,
            tokens: 4 << 20,
            nesting: 50,
            expansion_depth: 200,
            elements: 1 << 18,
            connections: 1 << 20,
            port: 65_535,
            tunnel_steps: 1 << 23,
            expanded_bytes: 256 << 20,
            libraries: 64,
            diagnostics: 1000,
        }
    }
}
