//! The configurations of `examples/`.

/// A configuration that is included in the program.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name: the file name without its extension.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! example {
    ($name:literal) => {
        Example { name: $name, text: include_str!(concat!("../../../../examples/", $name, ".click")) }
    };
}

/// The nine middleboxes of the ClickOS paper, in its order.
pub const EXAMPLES: &[Example] = &[
    example!("wire"),
    example!("ethermirror"),
    example!("router"),
    example!("firewall"),
    example!("nat"),
    example!("bras"),
    example!("ids"),
    example!("loadbalancer"),
    example!("flowmonitor"),
];
