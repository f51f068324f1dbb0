//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use deskhand_core::driver::Profile;
use deskhand_linux::private::{PrivateOptions, Size};

/// Lets AI agents use a Linux desktop: see the screen, read the element tree, point, click, type, and prove what
/// happened.
#[derive(Debug, Parser)]
#[command(name = "deskhand", version, propagate_version = false, disable_help_subcommand = true)]
#[command(after_help = "DESKHAND_LOG=error|warn|info|debug|trace|off says how much goes to stderr (warn).")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve one agent over MCP on stdin and stdout
    Mcp {
        #[command(flatten)]
        desktop: DesktopArgs,
        /// Which tools are listed; the others can be called all the same
        #[arg(long, value_enum, default_value_t = ProfileArg::Default)]
        profile: ProfileArg,
        #[command(flatten)]
        service: ServiceArgs,
        /// Own the desktop in this process, instead of sharing the service that owns it
        #[arg(long)]
        no_daemon_relaunch: bool,
        /// How long a service lives that has to be started
        #[arg(long, value_enum, value_name = "LIFETIME", default_value_t = LifetimeArg::Managed)]
        daemon_lifetime: LifetimeArg,
        /// What to do when the service is gone in the middle
        #[arg(long, value_enum, value_name = "WHAT", default_value_t = LossArg::Reconnect)]
        on_service_loss: LossArg,
        /// As of serve, for a desktop that this process owns itself (--private, --no-daemon-relaunch)
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        activity_dir: Option<PathBuf>,
    },
    /// Own the desktop and share it among agents, in the foreground
    ///
    /// `deskhand mcp` starts one by itself if there is none; this one stays until it is stopped. Exit code: 0 it was stopped or is not
    /// used any more, 1 it failed or the desktop went away.
    Serve {
        #[command(flatten)]
        desktop: DesktopArgs,
        /// Where it listens, instead of a socket in the runtime folder
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// End when the last client has left
        #[arg(long)]
        managed: bool,
        /// Change a bound: sessions, connections, calls (of a session), snapshots (of a session), output_bytes (of a connection)
        #[arg(long, value_name = "NAME=N")]
        limit: Vec<Limit>,
        /// Show a preview: a small window with what agents act on at the moment
        #[arg(long)]
        preview: bool,
        /// Keep a log of all calls in this folder, with a picture after each that acted; nothing that is typed is in it
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        activity_dir: Option<PathBuf>,
        /// The log that standard error has been made; given by whoever launches a service, so that it is kept short
        #[arg(long, value_name = "PATH", hide = true)]
        log_file: Option<PathBuf>,
        /// Read the host token from this inherited descriptor; without it no application can become the consent host
        #[cfg(feature = "host-consent")]
        #[arg(long, value_name = "N")]
        host_token_fd: Option<i32>,
    },
    /// Pass the lines of the service's socket through stdin and stdout
    ///
    /// For programs that speak the wire themselves (docs/wire.md). Starts a service if there is none.
    Connect {
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Say whether a service runs, and who uses it
    ///
    /// Exit code: 0 one runs, 3 none does.
    Status {
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End the service in order
    ///
    /// Exit code: 0 it has ended, 3 none runs.
    Stop {
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the sessions of the service, or end one
    Sessions {
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// The global settings, with and without a running service
    Config {
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Call one tool and print its answer
    ///
    /// Exit code: 0 it worked, 1 the tool answered an error, 2 the command line was wrong.
    Call(CallArgs),
    /// List the tools, or describe one
    Tools {
        /// Describe this tool
        #[arg(conflicts_with = "markdown")]
        name: Option<String>,
        /// Print JSON, as tools/list would
        #[arg(long)]
        json: bool,
        /// Which tools are listed
        #[arg(long, value_enum, default_value_t = ProfileArg::Default, conflicts_with_all = ["name", "markdown"])]
        profile: ProfileArg,
        /// Print docs/tools.md
        #[arg(long, hide = true, conflicts_with = "json")]
        markdown: bool,
    },
    /// Private desktops
    #[command(subcommand)]
    Desktop(DesktopCommand),
    /// What recordings leave behind, for people
    #[command(subcommand)]
    Recording(RecordingCommand),
    /// Say or change what AI agents may do on a machine that is joined to a fleet
    #[command(subcommand)]
    Consent(ConsentCommand),
    /// Say what works here, what is missing, and the command that mends it
    ///
    /// Exit code: 0 if an agent can work here, 1 if not.
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print how to connect a client
    McpConfig {
        /// The client
        #[arg(value_enum)]
        client: Client,
        /// Give the agent a desktop of its own
        #[arg(long)]
        private: bool,
    },
    /// Print a script that makes a shell complete this command line
    ///
    /// For bash, put it into ~/.local/share/bash-completion/completions/deskhand; for zsh, into a file _deskhand in a folder of
    /// $fpath; for fish, into ~/.config/fish/completions/deskhand.fish.
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: ShellArg,
    },
    /// Print the manual page
    ///
    /// To read it: deskhand man | man -l -
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct DesktopArgs {
    /// Work on a desktop of its own, started when it is first needed, instead of yours
    #[arg(long, value_name = "WxH", num_args = 0..=1, default_missing_value = "1920x1080")]
    pub(crate) private: Option<Size>,
    /// Programs on the private desktop see your home folder instead of an empty one
    #[arg(long, requires = "private")]
    pub(crate) keep_home: bool,
}

impl DesktopArgs {
    pub(crate) fn private(&self) -> Option<PrivateOptions> {
        self.private.map(|size| PrivateOptions { size, keep_home: self.keep_home })
    }
}

/// A bound of a service, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) value: usize,
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
        let (name, value) = pair.ok_or("expected NAME=NUMBER, such as connections=64")?;
        Ok(Self { name: name.to_owned(), value })
    }
}

/// Which service.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceArgs {
    /// The service that listens here, instead of the one that owns the desktop
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The desktop, such as :0, instead of the one that DISPLAY names
    #[arg(long, value_name = "NAME")]
    pub(crate) desktop: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// End a session: cancel its calls and drop what it owns
    End {
        /// Its id, as the list has it
        id: String,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print all settings and where each value comes from
    Show,
    /// Print one setting
    Get {
        /// Its name
        name: String,
    },
    /// Change a setting for everybody who does not override it, and save it
    Set {
        /// Its name
        name: String,
        /// Its value
        value: String,
    },
    /// Set a setting back to its default
    Unset {
        /// Its name
        name: String,
    },
    /// Print where the settings are kept
    Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LifetimeArg {
    /// Until the last client has left
    Managed,
    /// Until it is stopped
    Persistent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossArg {
    /// Use a service that somebody has started again
    Reconnect,
    /// Start one if there is none
    Relaunch,
    /// Fail from then on
    Fail,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Its arguments as a JSON object; - reads them from stdin
    pub(crate) arguments: Option<String>,
    /// Write the picture of the answer to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the structured part of the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with the session of this name: what one command looked at the next can click
    #[arg(long, value_name = "NAME", conflicts_with = "private")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// Work on a desktop of its own, which ends with the call, instead of yours
    // With `=`, or the tool's name would be taken for a size.
    #[arg(long, value_name = "WxH", num_args = 0..=1, require_equals = true, default_missing_value = "1920x1080")]
    pub(crate) private: Option<Size>,
    /// Programs on the private desktop see your home folder instead of an empty one
    #[arg(long, requires = "private")]
    pub(crate) keep_home: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DesktopCommand {
    /// Run a command on a private desktop, which ends with it
    Run {
        /// Size of the desktop in pixels
        #[arg(long, value_name = "WxH", default_value_t)]
        size: Size,
        /// The command sees your home folder instead of an empty one
        #[arg(long)]
        keep_home: bool,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordingCommand {
    /// Record what all sessions do, with a video of the display, until it is stopped or nothing is called for 5 minutes
    Start {
        /// A new folder, or one that holds a recording to add to
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Record turns alone
        #[arg(long)]
        no_video: bool,
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop recordings: all that run, those of sessions too
    Stop {
        /// Only that of this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What is being recorded, and what became of the last recordings
    Status {
        #[command(flatten)]
        service: ServiceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a page that shows a recording in any browser, offline: turns, pictures, effects, errors
    ///
    /// It is one file. A page that was made before is replaced; another file never is.
    Report {
        /// The folder of the recording
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// The page, instead of report.html in the folder
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a video of a recording's pictures, with the places marked at which it acted
    ///
    /// Needs ffmpeg.
    Render {
        /// The folder of the recording
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// The video to make, such as turns.mp4; it must not exist
        #[arg(value_hint = ValueHint::FilePath)]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConsentCommand {
    /// Say whether this machine is joined, and what is allowed
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow it; asks at the terminal
    #[cfg(not(feature = "host-consent"))]
    Grant {
        /// What is allowed
        #[arg(value_enum)]
        surface: SurfaceArg,
    },
    /// Allow it no longer, with effect on what runs
    #[cfg(not(feature = "host-consent"))]
    Revoke {
        /// What is no longer allowed; all of it if nothing is named
        #[arg(value_enum)]
        surface: Option<SurfaceArg>,
    },
}

/// What consent is about.
#[cfg(not(feature = "host-consent"))]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SurfaceArg {
    /// Seeing the screen
    Screen,
    /// Acting, which needs seeing as well
    Control,
    /// Both
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProfileArg {
    /// The small set that serves nearly every task
    Default,
    /// All tools
    Full,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Default => Self::Default,
            ProfileArg::Full => Self::Full,
        }
    }
}

/// A shell that can complete.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// A program that agents run in.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    Codex,
    Vscode,
}

impl Command {
    /// The log that whoever launched this process has made of its standard error.
    pub(crate) fn log_file(&self) -> Option<PathBuf> {
        match self {
            Self::Serve { log_file, .. } => log_file.clone(),
            _ => None,
        }
    }
}

/// Reads the command line; prints help, version or what is wrong and ends the process if that is what it asks for.
pub(crate) fn parse() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    fn parsed(line: &str) -> Result<Command, String> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn private_takes_a_size_or_none() {
        for (line, expected) in [
            ("deskhand mcp", None),
            ("deskhand mcp --private", Some((1920, 1080))),
            ("deskhand mcp --private 800x600 --profile full", Some((800, 600))),
            ("deskhand mcp --private --profile full", Some((1920, 1080))),
        ] {
            let Ok(Command::Mcp { desktop, .. }) = parsed(line) else { panic!("{line}") };
            assert_eq!(desktop.private.map(|size| (size.width, size.height)), expected, "{line}");
        }
        let Ok(Command::Call(call)) = parsed("deskhand call --private screenshot") else { panic!() };
        assert_eq!((call.tool.as_str(), call.private), ("screenshot", Some(Size::default())));
    }

    #[test]
    fn flags_that_do_not_fit_are_refused() {
        for (line, part) in [
            ("deskhand mcp --keep-home", "--private"),
            ("deskhand mcp --private 1x", "WIDTHxHEIGHT"),
            ("deskhand mcp --json", "--json"),
            ("deskhand doctor --private", "--private"),
            ("deskhand tools click --profile full", "--profile"),
            ("deskhand desktop run", "COMMAND"),
            ("deskhand mcp-config emacs", "claude-code"),
            ("deskhand completions csh", "bash"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_command_keeps_its_own_flags() {
        let Ok(Command::Desktop(DesktopCommand::Run { command, .. })) =
            parsed("deskhand desktop run -- ls --size 1")
        else {
            panic!()
        };
        assert_eq!(command, ["ls", "--size", "1"]);
    }
}
