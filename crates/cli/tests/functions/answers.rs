//! Answers that the switch does not follow.

use super::*;

/// Functions in C and Python that do not look at what a destination is: their answers are counted, and their packets go on.
#[test]
fn answers_to_unknown_destinations_are_overruled() {
    if !require(Capability::Python) {
        return;
    }
    let daemon = daemon("nowhere", &[]);
    let text = "import clickbox_function as c\nc.main(packet=lambda box, _: box.destination('port:x'))";
    let mut in_python = Command::new("python3");
    in_python.args(["-B", &daemon.file("nowhere.py", text)]).env("PYTHONPATH", PYTHON_SDK);
    let text = "#include \"clickbox.h\"\n\
                static clickbox_answer decide(struct clickbox *box, struct clickbox_packet *packet, void *state)\n\
                { (void)packet, (void)state; return clickbox_destination(box, \"port:x\"); }\n\
                int main(int count, char **words)\n\
                { return clickbox_main(count, words, &(struct clickbox_function){.packet = decide}); }\n";
    let program = daemon.folder.join("nowhere");
    let source = daemon.file("nowhere.c", text);
    let library = built().join("libclickbox.a");
    succeed(Command::new("cc").args(["-I", SDK, &source]).arg(library).arg("-o").arg(&program));
    for command in [&mut Command::new(program), &mut in_python] {
        let function = Function::start(&daemon, command, "nf");
        let overruled =
            || instances(&daemon, "nf").iter().filter_map(|one| one["overruled"].as_u64()).sum::<u64>();
        let before = overruled();
        pass(&daemon, 500);
        assert_eq!(overruled() - before, 500);
        function.kill();
        wait("the switch knows", || ups(&daemon, "nf") == 0);
    }
    daemon.check(&["account"], 0, &[]);
}
