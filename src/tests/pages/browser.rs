//! Headless Chromium: opens a page, lets a script look at it, and hands back
//! what that saw and what the browser complained of.
//!
//! The script is put at the end of a copy of the page. It leaves its answer as
//! JSON in an element of its own, which `--dump-dom` prints.
//!
//! Neighbours: `shows`, `looks` and `many` ask.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names under which it is packaged.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Where the browser is.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name)));
    let mut found = found.filter(|file| file.is_file());
    found
        .next()
        .ok_or_else(|| format!("none of {} is on the PATH (apt-get install chromium)", NAMES.join(", ")))
}

/// How a page is opened.
#[derive(Clone, Copy, Default)]
pub struct Visit<'a> {
    /// What stands behind the `#` of its address.
    pub hash: &'a str,
    /// Whether the reader prefers dark colours.
    pub dark: bool,
    /// The width of the window, in pixels; 1,200 where it is 0.
    pub width: u32,
}

/// What a page answered.
pub struct Seen {
    /// What the script gave back.
    pub answer: Value,
    /// Errors and warnings of the browser's console.
    pub complaints: Vec<String>,
}

/// Opens `page` and gives back what the body of a function, `script`, returns there.
///
/// # Errors
/// The browser fails, or the script does.
pub fn ask(page: &str, visit: Visit<'_>, script: &str) -> Result<Seen, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = dir.path().join("page.html");
    std::fs::write(&file, with_script(page, script)).map_err(|error| error.to_string())?;
    let width = if visit.width == 0 { 1_200 } else { visit.width };
    let mut command = Command::new(find()?);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--window-size={width},900"));
    command.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
    // 0 is dark, 1 is light.
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!visit.dark)));
    command.arg(format!("file://{}{}", file.display(), visit.hash));
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let complaints = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_string).collect();
    let answer = dom.split("<pre id=\"answer\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let answer = answer.ok_or_else(|| format!("the page gave no answer; the browser said:\n{said}"))?;
    let answer = serde_json::from_str(answer).map_err(|error| format!("{error} in {answer}"))?;
    Ok(Seen { answer, complaints })
}

/// As [`ask`], of a page that nothing may be complained of.
///
/// # Errors
/// The browser or the script fails, or the browser complains.
pub fn ask_in_peace(page: &str, visit: Visit<'_>, script: &str) -> Result<Value, String> {
    let seen = ask(page, visit, script)?;
    if seen.complaints.is_empty() { Ok(seen.answer) } else { Err(seen.complaints.join("\n")) }
}

/// What all scripts may use.
const WORDS: &str = r##"
const all = (selector) => Array.from(document.querySelectorAll(selector));
const rows = () => all("#rows > tr:not(.detail)").filter((tr) => !tr.hidden);
const names = () => rows().map((tr) => tr.querySelector("bdi").textContent);
const type = (words) => {
  document.getElementById("words").value = words;
  document.getElementById("words").dispatchEvent(new Event("input", { bubbles: true }));
};
"##;

/// The page with a script at its end. An answer replaces the page, so that
/// not all of it is printed.
fn with_script(page: &str, script: &str) -> String {
    let end = format!(
        "<script>{{ {WORDS}\nlet answer;\ntry {{ answer = (() => {{ {script} }})(); }} \
         catch (error) {{ answer = String(error.stack); }}\n\
         const pre = document.createElement('pre');\npre.id = 'answer';\n\
         pre.textContent = JSON.stringify(answer ?? null).replace(/[&<>\\u00a0]/g, \
         (c) => '\\\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));\n\
         document.body.replaceChildren(pre); }}</script>\n</body>\n</html>"
    );
    page.replace("</body>\n</html>", &end)
}

/// A line for people; the macros would be kept by a test harness.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
