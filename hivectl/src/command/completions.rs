//! `hivectl completions`: the script by which a shell completes command lines.

use std::path::PathBuf;

use clap::Args;
use clap_complete::env::Shells;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;

const PROGRAM: &str = "hivectl";

const AFTER_HELP: &str = "\
Put one of these into the file that your shell reads when it starts:

  bash         source <(hivectl completions bash)            in ~/.bashrc
  zsh          source <(hivectl completions zsh)             in ~/.zshrc, after compinit
  fish         hivectl completions fish | source             in ~/.config/fish/config.fish
  elvish       eval (hivectl completions elvish | slurp)     in ~/.config/elvish/rc.elv
  powershell   hivectl completions powershell | Out-String | Invoke-Expression    in $PROFILE

HIVE_COMPLETION_MS sets how many milliseconds the broker has to answer [default: 250].";

/// Print the script by which a shell completes hivectl's command lines.
///
/// With it, Tab completes commands and options, and also what exists in the hive: names of agents,
/// and ids of questions, mail, reminders, schedules, dead letters and turns. Shells that support it
/// show a description of each. Each Tab asks the broker of --socket or HIVE_SOCKET; without an
/// answer in a quarter of a second, nothing is offered.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), Failure> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).expect("clap knows all of these shells");
        let mut script = Vec::new();
        let written = shell.write_registration(
            complete::VARIABLE,
            PROGRAM,
            PROGRAM,
            &called_as(),
            &mut script,
        );
        written.map_err(Failure::Output)?;
        context.out.line(String::from_utf8_lossy(&script).trim_matches('\n'))
    }
}

/// Returns how the script calls this program: by its name, or by the path by which it was called.
fn called_as() -> String {
    let called = std::env::args_os().next().map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from);
    let path = if called.components().count() > 1 {
        std::path::absolute(&called).unwrap_or(called)
    } else {
        called
    };
    path.display().to_string()
}
