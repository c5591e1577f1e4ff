//! The command line of one claude process.
//!
//! Invariant: built-in tools are a whitelist, and `--allowedTools` is the last option, because it
//! takes every word that follows.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Built-in tools that every agent has.
pub const BUILTIN_TOOLS: [&str; 5] = ["Edit", "Glob", "Grep", "Read", "Write"];
/// Built-in tools of the `web_tools` group.
pub const WEB_TOOLS: [&str; 2] = ["WebFetch", "WebSearch"];
/// Built-in tools that no agent has, even if claude offers them.
pub const DENIED_TOOLS: [&str; 4] = ["Bash", "Task", "NotebookEdit", "TodoWrite"];
/// The tool group that adds [`WEB_TOOLS`].
pub const WEB_GROUP: &str = "web_tools";

/// The tool group of the shell tools, which are a server's, not claude's.
pub const EXECUTION_GROUP: &str = "execution";

/// The parameters of one claude process.
#[derive(Debug)]
pub struct Invocation<'a> {
    pub model: &'a str,
    /// Whether it continues the conversation of the working directory.
    pub continues: bool,
    /// Whether the process stays and reads a line of JSON per turn, instead of one prompt.
    pub resident: bool,
    pub settings: &'a Path,
    pub system_prompt: &'a Path,
    pub mcp_config: &'a Path,
    /// Tools of MCP servers that need no further permission.
    pub mcp_tools: &'a [String],
    /// Directories besides the working directory that the agent may write to.
    pub further_dirs: &'a [PathBuf],
    pub tool_groups: &'a [String],
}

/// Returns the arguments, without the program.
pub fn arguments(invocation: &Invocation<'_>) -> Vec<OsString> {
    let Invocation {
        model,
        continues,
        resident,
        settings,
        system_prompt,
        mcp_config,
        mcp_tools,
        further_dirs,
        tool_groups,
    } = invocation;
    let builtins = builtin_tools(tool_groups).join(",");
    let mut arguments: Vec<OsString> =
        ["--print", "--verbose", "--output-format", "stream-json", "--model", model]
            .map(OsString::from)
            .to_vec();
    if *resident {
        arguments.extend(["--input-format".into(), "stream-json".into()]);
    }
    if *continues {
        arguments.push("--continue".into());
    }
    arguments.extend(["--settings".into(), settings.into()]);
    arguments.extend(["--system-prompt-file".into(), system_prompt.into()]);
    for dir in *further_dirs {
        // One option per directory, because the option takes every word that follows.
        arguments.extend(["--add-dir".into(), dir.into()]);
    }
    arguments.extend(["--mcp-config".into(), mcp_config.into()]);
    arguments.push("--strict-mcp-config".into());
    // Without this a changed system prompt is silently ignored for the rest of the conversation.
    arguments.extend(["--system-prompt-snapshot".into(), "off".into()]);
    arguments.extend(["--tools".into(), builtins.clone().into()]);
    let allowed = [&[builtins], *mcp_tools].concat().join(",");
    arguments.extend(["--allowedTools".into(), allowed.into()]);
    arguments
}

/// Returns the built-in tools of an agent with these groups.
pub fn builtin_tools(tool_groups: &[String]) -> Vec<&'static str> {
    let web = tool_groups.iter().any(|group| group == WEB_GROUP);
    BUILTIN_TOOLS.into_iter().chain(WEB_TOOLS.into_iter().filter(|_| web)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(continues: bool, groups: &[&str]) -> String {
        let tool_groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let dirs = ["/src/a", "/src/b"].map(PathBuf::from);
        let arguments = arguments(&Invocation {
            model: "haiku",
            continues,
            resident: false,
            settings: Path::new("s.json"),
            system_prompt: Path::new("p.md"),
            mcp_config: Path::new("m.json"),
            mcp_tools: &["mcp__hive__*".to_owned(), "mcp__notes__list".to_owned()],
            further_dirs: if continues { &[] } else { &dirs },
            tool_groups: &tool_groups,
        });
        arguments.join(std::ffi::OsStr::new(" ")).into_string().expect("plain text")
    }

    #[test]
    fn the_line_is_the_specified_one() {
        assert_eq!(
            line(true, &["messaging"]),
            "--print --verbose --output-format stream-json --model haiku --continue --settings s.json --system-prompt-file p.md \
             --mcp-config m.json --strict-mcp-config --system-prompt-snapshot off --tools Edit,Glob,Grep,Read,Write \
             --allowedTools Edit,Glob,Grep,Read,Write,mcp__hive__*,mcp__notes__list"
        );
    }

    #[test]
    fn a_fresh_session_drops_continue_and_web_tools_are_by_group() {
        let line = line(false, &["web_tools"]);
        assert!(
            !line.contains("--continue")
                && line.contains(" --add-dir /src/a --add-dir /src/b --mcp-config m.json ")
        );
        assert!(line.contains("--tools Edit,Glob,Grep,Read,Write,WebFetch,WebSearch "));
        assert!(line.ends_with("WebFetch,WebSearch,mcp__hive__*,mcp__notes__list"));
    }
}
