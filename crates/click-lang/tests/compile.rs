//! Compilation of configurations, with and without errors.

use click_lang::steps::Steps;
use click_lang::tree::{TokenKind, Tree};
use click_lang::{
    Compiled, Library, Limits, Options, compile, compile_in_steps, flatten, format, plain_quotes,
};
use random::Random;

const CLASSES: &[&str] =
    &["Discard", "Idle", "InfiniteSource", "Message", "Null", "Paint", "Print", "Queue", "Tee"];

fn compiled(text: &str) -> Compiled {
    let is_class = |name: &str| CLASSES.contains(&name);
    compile(text, &Options { class_names: CLASSES, ..Options::new("config", &is_class) })
}

fn messages(compiled: &Compiled) -> Vec<String> {
    let lines = compiled.diagnostics.iter().map(|diagnostic| plain_quotes(&diagnostic.to_string()));
    lines.flat_map(|lines| lines.lines().map(String::from).collect::<Vec<_>>()).collect()
}

/// Asserts that the graph of `text` has exactly `elements` (`name :: class(config)`) and `connections` (`a[0]-[1]b`),
/// in this order.
#[track_caller]
fn check(text: &str, elements: &[&str], connections: &[&str]) {
    let compiled = compiled(text);
    assert_eq!(messages(&compiled), [""; 0], "{text}");
    assert_eq!(summary(&compiled), (strings(elements), strings(connections)), "{text}");
    let again = self::compiled(&flatten(&compiled.graph));
    assert_eq!(summary(&again), summary(&compiled), "flattened: {}", flatten(&compiled.graph));
}

/// Asserts that `text` causes exactly these messages, in this order.
#[track_caller]
fn check_errors(text: &str, expected: &[&str]) {
    assert_eq!(messages(&compiled(text)), expected, "{text}");
}

/// Asserts that `text` causes exactly these errors, besides those that follow from them.
#[track_caller]
fn check_causes(text: &str, expected: &[&str]) {
    let mut compiled = compiled(text);
    compiled.diagnostics.retain(|diagnostic| !diagnostic.is_consequence);
    assert_eq!(messages(&compiled), expected, "{text}");
}

#[test]
fn consequences_are_marked() {
    // Without its `(`, a declaration is a series of syntax errors up to the semicolon.
    check_causes(
        "define$FRAME \\<02 03 0800>, $LENGTH 64; Idle -> Foo; a -> Discard;",
        &["config:1: expected '('", "config:1: undeclared element 'Foo'", "config:1: undeclared element 'a'"],
    );
    check_causes(
        "x :: InfiniteSourceDATA $FRAME, LENGTH 5) -> y :: Null; z -> Discard",
        &[
            "config:1: unknown element class 'InfiniteSourceDATA'",
            "config:1: syntax error near 'FRAME'",
            "config:1: undeclared element 'z'",
        ],
    );
    // The missing port of a compound follows from the broken connection inside; two errors in two statements do not
    // follow from each other.
    check_causes(
        "elementclass M { input -> Null - output; } Idle -> M -> Discard; -> ;",
        &["config:1: syntax error near '-'", "config:1: syntax error near '->'"],
    );
    check_causes(
        "elementclass M { input -> Discard } Idle -> M -> Discard",
        &["config:1: 'M@2' has no output 0"],
    );
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn summary(compiled: &Compiled) -> (Vec<String>, Vec<String>) {
    let graph = &compiled.graph;
    let element = |element: &click_lang::Element| match element.config.as_str() {
        "" => format!("{} :: {}", element.name, element.class),
        config => format!("{} :: {}({config})", element.name, element.class),
    };
    let name = |index: usize| &graph.elements[index].name;
    let connection = |c: &click_lang::Connection| {
        format!("{}[{}]-[{}]{}", name(c.from.element), c.from.port, c.to.port, name(c.to.element))
    };
    (graph.elements.iter().map(element).collect(), graph.connections.iter().map(connection).collect())
}

#[test]
fn elements_are_declared_and_connected() {
    check("", &[], &[]);
    check("Idle -> Discard;", &["Idle@1 :: Idle", "Discard@2 :: Discard"], &["Idle@1[0]-[0]Discard@2"]);
    check("a, b :: Queue(3)", &["a :: Queue(3)", "b :: Queue(3)"], &[]);
    check("a :: Idle -> b :: Null(/* x */ 1)", &["a :: Idle", "b :: Null(/* x */ 1)"], &["a[0]-[0]b"]);
    check("a :: Idle; a [2] -> [1] a", &["a :: Idle"], &["a[2]-[1]a"]);
    check("Null@2 :: Idle; Null", &["Null@2 :: Idle", "Null@3 :: Null"], &[]);
    check("a :: Idle // x\n; /* y */ a -> a", &["a :: Idle"], &["a[0]-[0]a"]);
}

#[test]
fn port_lists_are_joined() {
    check(
        "a, b :: Idle; a [0, 2-3] => [1,] b",
        &["a :: Idle", "b :: Idle"],
        &["a[0]-[1]b", "a[2]-[2]b", "a[3]-[3]b"],
    );
    check(
        "a, b, c :: Idle; a => b, c",
        &["a :: Idle", "b :: Idle", "c :: Idle"],
        &["a[0]-[0]b", "a[1]-[0]c"],
    );
    check(
        "a, b, c :: Idle; a -> b, c",
        &["a :: Idle", "b :: Idle", "c :: Idle"],
        &["a[0]-[0]b", "a[0]-[0]c"],
    );
    check(
        "a, d :: Idle; a => ( -> c :: Idle ), ( -> Null -> b :: Idle ), d",
        &["a :: Idle", "d :: Idle", "c :: Idle", "Null@10 :: Null", "b :: Idle"],
        &["a[2]-[0]d", "a[0]-[0]c", "a[1]-[0]Null@10", "Null@10[0]-[0]b"],
    );
    check("a :: Idle; a => ([0] -> [1]; [1] -> [0]) => a", &["a :: Idle"], &["a[1]-[0]a", "a[0]-[1]a"]);
}

#[test]
fn compounds_are_expanded() {
    check(
        "elementclass Two { $a, N $n, __REST__ $r | input -> p :: Print($a $n) -> Queue($r) -> output }
         Idle -> Two(x, 1, N 2, 3) -> Discard",
        &["Idle@1 :: Idle", "Discard@3 :: Discard", "Two@2/p :: Print(x 2)", "Two@2/Queue@2 :: Queue(1, 3)"],
        &["Two@2/Queue@2[0]-[0]Discard@3", "Idle@1[0]-[0]Two@2/p", "Two@2/p[0]-[0]Two@2/Queue@2"],
    );
    check(
        "a :: Idle; a -> x :: { -> Null -> ; [1] -> [1] } -> a; a -> [1] x [1] -> [1] a",
        &["a :: Idle", "x/Null@1 :: Null"],
        &["x/Null@1[0]-[0]a", "a[0]-[1]a", "a[0]-[0]x/Null@1"],
    );
    check(
        "elementclass F { $a | Print($a) || $a, $b | Print($a, $b) } F(1); F(1, 2);
         elementclass F { | Idle || ... } F; F(3)",
        &[
            "F@1/Print@1 :: Print(1)",
            "F@2/Print@1 :: Print(1, 2)",
            "F@3/Idle@1 :: Idle",
            "F@4/Print@1 :: Print(3)",
        ],
        &[],
    );
    check("elementclass T Tee; elementclass U T; u :: U; T", &["u :: Tee", "T@2 :: Tee"], &[]);
    check("elementclass Idle { x :: Idle } Idle", &["Idle@1/x :: Idle"], &[]);
    check("elementclass A { B :: { c :: Idle } } a :: A", &["a/B/c :: Idle"], &[]);
}

#[test]
fn variables_are_replaced_where_they_are_visible() {
    check(
        "define($a 1, $b \"x y\"); Print($a, \"$b\", '$a', ${b[0]}, ${c-$a}, $c)",
        &[r#"Print@1 :: Print(1, "\"x y\"", '$a', "x y", 1, $c)"#],
        &[],
    );
    check(
        "elementclass Outer { $a | elementclass Inner { $b | Print($a, $b) } 
             elementclass Shadow { $a | Inner($a) } Shadow(in) } Outer(out)",
        &["Outer@1/Shadow@1/Inner@1/Print@1 :: Print(out, in)"],
        &[],
    );
    check("elementclass A { define($x $y$y) Print($x) } define($y 2) A", &["A@1/Print@1 :: Print(22)"], &[]);
    let is_class = |name: &str| name == "Print";
    let parameters = [("x".to_string(), "command line".to_string())];
    let options = Options { parameters: &parameters, ..Options::new("", &is_class) };
    let compiled = compile("define($x text) Print($x)", &options);
    assert_eq!(compiled.graph.elements[0].config, "command line");
}

#[test]
fn requirements_and_libraries_are_read() {
    let compiled = compiled("require(compact_config, package \"a b\", c); provide(d, e)");
    let requirements: Vec<_> =
        compiled.graph.requirements.iter().map(|r| (r.kind.as_str(), r.value.as_str())).collect();
    assert_eq!(requirements, [("compact_config", ""), ("package", "a b"), ("package", "c")]);
    assert_eq!(compiled.graph.provisions, ["d", "e"]);
    assert_eq!(flatten(&compiled.graph), "require(compact_config, package \"a b\", package \"c\");\n\n");

    let reader = |name: &str, _folder: &str| {
        let text = match name {
            "one" => "require(library sub/two) elementclass A { B }",
            "sub/two" => "require(library one) elementclass B { x :: Idle; y }",
            _ => return None,
        };
        Some(Library { path: format!("./{name}"), text: text.into() })
    };
    let is_class = |name: &str| name == "Idle";
    let options = Options { reader: Some(&reader), ..Options::new("config", &is_class) };
    let compiled = compile("require(library one, library three);\nrequire(library one) a :: A", &options);
    let lines = messages(&compiled);
    assert_eq!(compiled.graph.elements[0].name, "a/B@1/x");
    assert_eq!(compiled.graph.elements[0].location.to_string(), "./sub/two:1");
    assert_eq!(lines[0], "./sub/two:1: undeclared element 'y'");
    assert_eq!(lines[1], "config:1: library 'three' not found in CLICKPATH/conf");
    assert_eq!(lines.len(), 2);
}

#[test]
fn all_errors_are_reported_in_order() {
    check_errors("\u{7f}ELF\u{2}\u{1}\u{1}\0\0; a ->", &["'config' is a program, not a configuration"]);
    check_errors(
        "x -> Null;\n-> a;\nb :: Idle;\nb :: Null; c :: Foo;\nIdle :: Null",
        &[
            "config:1: undeclared element 'x'",
            "config:2: syntax error near '->'",
            "config:2: undeclared element 'a'",
            "config:4: redeclaration of element 'b'",
            "config:3: element 'b' previously declared here",
            "config:4: unknown element class 'Foo'",
            "config:5: class 'Idle' used as element name",
        ],
    );
    check_errors(
        "elementclass G { $a | input -> output }\nIdle -> G -> Discard",
        &[
            "config:2: no match for 'G[1 input, 1 output]'",
            "config:1: candidates are:",
            "config:1:   G(<arg>)[1 input, 1 output]",
        ],
    );
    check_errors(
        "a :: { input [1] -> output; output -> input }",
        &[
            "config:1: '<anonymous>' pseudoelement 'input' may only be used as output",
            "config:1: '<anonymous>' input 0 missing",
            "config:1: '<anonymous>' pseudoelement 'output' may only be used as input",
            "config:1: 'a' input 1 unused",
            "config:1: 'a' output 0 unused",
            "config:1: 'a/output' used as output",
            "config:1: 'a/input' used as input",
        ],
    );
    check_errors(
        "Idle -> {Null} -> Discard",
        &["config:1: '@2' has no input 0", "config:1: '@2' has no output 0"],
    );
    check_errors(
        "elementclass X { $a, A $b, $c | } elementclass Y { A $b , A $c, A $c | }",
        &[
            "config:1: compound element parameters out of order",
            "config:1: (The correct order is '[positional], [keywords], [__REST__]'.)",
            "config:1: repeated keyword parameter 'A' in compound element",
            "config:1: parameter '$c' multiply defined",
        ],
    );
    check_errors(
        "define(x 1, $y 1, $y 2)",
        &["config:1: bad 'define' declaration: not a variable", "config:1: parameter '$y' multiply defined"],
    );
    check_errors(
        "elementclass A { a :: Idle } a :: A; a/a :: Idle",
        &["config:1: redeclaration of element 'a/a'", "config:1: 'a/a' previously declared here"],
    );
    check_errors("12 :: Idle", &["config:1: element name '12' has all-digit component"]);
    check_errors(
        "a, b :: Idle; a -> ; [1] b -> a [2]",
        &[
            "config:1: syntax error near ';'",
            "config:1: input ports ignored at start of chain",
            "config:1: output ports ignored at end of chain",
        ],
    );
    check_errors(
        "a :: Idle;\na [0]\n\na -> a;\na\n[0];",
        &["config:4: output ports ignored at end of chain", "config:6: output ports ignored at end of chain"],
    );
    check_errors(
        "a :: Tee;\na [0} -> [)0] b;\na [1-2-3];",
        &[
            "config:2: syntax error: expected ','",
            "config:2: syntax error: expected port number",
            "config:2: output ports ignored at end of chain",
            "config:2: syntax error near '}'",
            "config:2: syntax error near '->'",
            "config:2: syntax error: expected port number",
            "config:2: syntax error near ')'",
            "config:2: undeclared element '0'",
            "config:2: syntax error near ']'",
            "config:2: undeclared element 'b'",
            "config:3: syntax error: expected ','",
            "config:3: syntax error: expected port number",
            "config:3: syntax error near '-'",
            "config:3: output ports ignored at end of chain",
            "config:3: undeclared element '3'",
            "config:3: syntax error near ']'",
        ],
    );
    check_errors(
        "b :: ;\nb $v;\na, ; b",
        &[
            "config:1: missing element type in declaration",
            "config:1: unknown element class 'b'",
            "config:2: syntax error near 'v'",
            "config:2: syntax error near 'v'",
            "config:3: undeclared element 'a'",
        ],
    );
    check_errors(
        "elementclass G { $a | output -> }\ng :: G;\n",
        &[
            "config:1: 'G' pseudoelement 'output' may only be used as input",
            "config:3: no match for 'G[0 inputs, 0 outputs]'",
            "config:1: candidates are:",
            "config:1:   G(<arg>)[0 inputs, 1 output]",
        ],
    );
    check_errors(
        "# 7 \"g\"\nx\n# 1 \"\"\ny",
        &["g:7: undeclared element 'x'", "config:1: undeclared element 'y'"],
    );
}

#[test]
fn the_nearest_name_is_hinted() {
    let hint = |text: &str| compiled(text).diagnostics[0].hint.clone();
    assert_eq!(hint("a :: Discrad").as_deref(), Some("did you mean ‘Discard’?"));
    assert_eq!(hint("counter :: Idle; couter -> counter").as_deref(), Some("did you mean ‘counter’?"));
    assert_eq!(hint("a :: SomethingElse"), None);
}

#[test]
fn expansion_bombs_are_rejected() {
    let doubling = |levels: usize, body: &str| {
        let mut text = String::from("elementclass C0 { Idle }\n");
        for level in 1..=levels {
            let inner = format!("C{}", level - 1);
            text.push_str(&format!("elementclass C{level} {{ {} }}\n", body.replace("INNER", &inner)));
        }
        text + &format!("C{levels}")
    };
    let check = |text: &str, expected: &[&str]| {
        let is_class = |name: &str| CLASSES.contains(&name);
        let limits = Limits {
            elements: 10_000,
            connections: 10_000,
            tunnel_steps: 100_000,
            expanded_bytes: 5_000_000,
            source_bytes: 10_000_000,
            tokens: 100_000,
            ..Limits::default()
        };
        let compiled = compile(text, &Options { limits, ..Options::new("config", &is_class) });
        assert_eq!(messages(&compiled), expected);
    };
    let too_many = "config:4: too many elements or connections after compound elements are expanded";
    check(&doubling(40, "INNER; INNER"), &[too_many]);
    check(&doubling(300, "INNER"), &["config:102: compound elements nested too deeply"]);
    let mut nested = vec!["config:1: expected '}'"; Limits::default().nesting];
    nested[0] = "config:1: maximum compound element nesting depth exceeded";
    check(&"{".repeat(100_000), &nested);
    for length in [1_000_000, 11_000_000] {
        check(&";".repeat(length), &["config:1: configuration too long: the rest is not read"]);
    }
    check("a :: Idle; a [0-65535] => [0-65535] a", &["config:1: too many ports"; 2]);
    let mut text = String::from("elementclass P { input -> output } define($a 1)");
    for n in 0..10 {
        text.push_str(&format!("define($v{n} {})", format!("$v{}", n + 1).repeat(100)));
    }
    check(&(text + "Print($v0)"), &["config:1: configuration text too long after variables are replaced"]);
    let mut text = String::from("Idle -> p :: {input -> output}; ");
    text.push_str(&"Idle -> p; p -> Discard; ".repeat(200));
    check(&text, &["config:1: too many connections through compound elements"]);
}

/// A text of `count` pieces.
/// The number of steps in which a text is compiled.
fn steps_of(text: String) -> usize {
    let mut steps = Steps::new(async move {
        let is_class = |name: &str| name.starts_with(char::is_uppercase);
        compile_in_steps(&text, &Options::new("f", &is_class)).await
    });
    for count in 1.. {
        if let Some(compiled) = steps.step() {
            assert!(!compiled.has_errors(), "{:?}", messages(&compiled));
            return count;
        }
    }
    0
}

#[test]
fn a_statement_of_any_length_is_compiled_in_steps() {
    let chain = |count: usize| format!("Idle {} -> Discard;", "-> Counter ".repeat(count));
    let list = |count: usize| {
        (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>().join(", ") + " :: Idle;"
    };
    let class = |count: usize| {
        format!("elementclass X {{ input {} -> output }} Idle -> X -> Discard;", "-> Counter ".repeat(count))
    };
    let group = |count: usize| format!("Idle -> ( {} -> ) -> Discard;", "-> Counter ".repeat(count));
    let names = |count: usize| format!("a :: Idle; {}", "a -> Discard; ".repeat(count));
    let shapes: [&dyn Fn(usize) -> String; 5] = [&chain, &list, &class, &group, &names];
    for (number, shape) in shapes.into_iter().enumerate() {
        let [few, many] = [200, 400].map(|count| steps_of(shape(count)));
        // It is parsed, lowered and expanded an element a step.
        assert!(many - few >= 3 * 200, "shape {number}: {few} and {many} steps");
    }
    // Long configurations are read some thousand bytes a step.
    let config = |length: usize| format!("Idle({});", "1.2.3.4/8, ".repeat(length / 11));
    let [short, long] = [1 << 14, 1 << 18].map(|length| steps_of(config(length)));
    assert!(long - short >= 15, "{short} and {long} steps");
}

fn pieces(random: &mut Random, count: u32, pieces: &[&str]) -> String {
    (0..count).map(|_| pieces[random.below(pieces.len() as u32) as usize]).collect()
}

/// Asserts that the tree reproduces the text, and that the printed graph and the formatted text mean the same.
fn check_properties(text: &str) {
    let tree = Tree::parse(text);
    assert_eq!(tree.to_string(), text);
    let compiled = compiled(text);
    if !compiled.has_errors() {
        let again = self::compiled(&flatten(&compiled.graph));
        assert_eq!(summary(&again), summary(&compiled), "{text:?}");
    }
    if let Ok(formatted) = format(text, "f") {
        let tokens = |text: &str| -> Vec<String> {
            let tree = Tree::parse(text);
            let tokens = tree.tokens().filter(|(kind, _)| *kind != TokenKind::Space);
            tokens.map(|(_, token)| token.trim_end().to_string()).collect()
        };
        assert_eq!(tokens(&formatted), tokens(text), "{text:?} became {formatted:?}");
        assert_eq!(format(&formatted, "f").as_deref(), Ok(formatted.as_str()), "{text:?}");
        assert_eq!(summary(&self::compiled(&formatted)), summary(&compiled), "{text:?}");
    }
}

#[test]
fn any_text_compiles_without_a_panic() {
    // Random sequences of language fragments find more errors than random bytes.
    const PIECES: &[&str] = &[
        "a",
        "b",
        "Idle",
        "X",
        " ",
        "\n",
        ";",
        "::",
        "->",
        "=>",
        "[",
        "]",
        "0",
        "1",
        ",",
        "-",
        "{",
        "}",
        "(",
        ")",
        "||",
        "|",
        "...",
        "elementclass",
        "define",
        "require",
        "provide",
        "$a",
        "${a}",
        "input",
        "output",
        "\"",
        "'",
        "\\<",
        "//",
        "/*",
        "*/",
        "#",
        "# 1 \"x\"\n",
        "\\",
        "é",
        "\u{0}",
        "library x",
        "__REST__",
        "/",
        "@",
        "$",
        "\r",
    ];
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5_000 {
        let count = random.below(60);
        check_properties(&pieces(&mut random, count, PIECES));
    }
}

#[test]
fn plausible_texts_keep_their_meaning() {
    const STATEMENTS: &[&str] = &[
        "a::Idle",
        "b :: Null(1,\n2)",
        "a->b",
        "a\n->\nb",
        "a[0,1]=>[0,1]a",
        "a=>(->b),{->Null->}",
        "require(x)",
        "Idle->Print(\"x\")",
        "elementclass X{",
        "elementclass X{$a|",
        "elementclass X { $a, K $b,\n__REST__ $c |\n",
        "}",
        "||",
        "x::{",
        "a->{",
        "a=>(",
        ")",
        "define($a 1)",
        "input->output",
        "[0]->[1]",
        "-> Null ->",
        "||...}",
        "->b",
        "X(1)",
        "elementclass Y X",
    ];
    const SPACE: &[&str] = &[
        "",
        " ",
        ";",
        ";\n",
        "\n",
        "\n\n\n",
        " // c\n",
        "/* d */",
        "\n/* e\n */\n",
        "\n# 7 \"g\"\n",
        "\r\n",
        " /**/ //\n",
    ];
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let mut valid = 0;
    for _ in 0..5_000 {
        let mut text = String::new();
        for _ in 0..random.below(8) {
            text += &pieces(&mut random, 1, STATEMENTS);
            let count = 1 + random.below(3);
            text += &pieces(&mut random, count, SPACE);
        }
        check_properties(&text);
        valid += usize::from(Tree::parse(&text).errors().is_empty());
    }
    assert!(valid > 1_000, "only {valid} were without syntax errors");
}
