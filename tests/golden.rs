//! Golden cases: a directory of documents in, what each proxy receives out. `golden/README.md` says
//! how to add, update and read a case; each is a test of its own here.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use pilotfish::compile::Compiled;
use pilotfish::diag::{self, Code, Severity};
use pilotfish::generate::Generated;
use pilotfish::xds::{TypeUrl, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};
use support::case::{self, Case, Origin};
use support::compiled::{self, Input};
use support::shuffle::{self, Random};
use support::{consistency, diff};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mode = match Mode::of_environment() {
        Ok(mode) => mode,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = vec![
        Trial::test("every_example_is_a_case", every_example_is_a_case),
        Trial::test("every_directory_is_a_case", no_stray_directories),
    ];
    if mode == Mode::Compare {
        trials.push(Trial::test("every_code_is_shown_by_a_case", every_code_is_shown));
    }
    trials.extend(
        case::all()
            .into_iter()
            .map(|(name, case)| Trial::test(name, move || run(&case?, mode).map_err(Failed::from))),
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether expected files are compared or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compare,
    Update,
}

impl Mode {
    fn of_environment() -> Result<Mode, &'static str> {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        match (set("UPDATE_GOLDEN"), set("CI")) {
            (false, _) => Ok(Mode::Compare),
            (true, false) => Ok(Mode::Update),
            (true, true) => Err("UPDATE_GOLDEN is refused in CI: expected files are reviewed"),
        }
    }
}

fn run(case: &Case, mode: Mode) -> Result<(), String> {
    let input = Input::read(case);
    if let Some(problem) = input.problems.first() {
        return Err(problem.to_string());
    }
    let outcome = Outcome::of(case, &input)?;
    let produced = outcome.files();
    match mode {
        Mode::Compare => compare(case, &produced)?,
        Mode::Update => update(case, &produced).map_err(|e| e.to_string())?,
    }
    outcome.check(case)?;
    replay(case, &input, &outcome)
}

/// What comes out of a case.
struct Outcome {
    compiled: Compiled,
    proxies: Vec<(String, Generated)>,
}

impl Outcome {
    fn of(case: &Case, input: &Input) -> Result<Outcome, String> {
        let compiled = input.compile();
        let proxies = case.proxies.iter().map(|proxy| {
            let generated = compiled::generate(&compiled, proxy);
            Ok((proxy.name.clone(), generated.map_err(|e| format!("{}: {e}", proxy.name))?))
        });
        let proxies = proxies.collect::<Result<_, String>>()?;
        Ok(Outcome { compiled, proxies })
    }

    /// The expected files by their path below `expected`. What is empty has no file, except for the
    /// findings about the documents: that there are none is worth a file.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let findings = diag::concise(&self.compiled.diagnostics);
        let mut files = BTreeMap::from([(PathBuf::from("diagnostics.txt"), findings)]);
        for (name, generated) in &self.proxies {
            let dir = Path::new(name);
            if !generated.diagnostics.is_empty() {
                let findings = diag::concise(&generated.diagnostics);
                files.insert(dir.join("diagnostics.txt"), findings);
            }
            for type_url in TypeUrl::ALL {
                let resources: Vec<_> = generated
                    .set
                    .of_type(type_url)
                    .map(|resource| json::resource_json(type_url, resource))
                    .collect();
                if !resources.is_empty() {
                    let path = dir.join(format!("{}.yaml", type_url.plural()));
                    files.insert(path, json::yaml(&resources.into()));
                }
            }
        }
        files
    }

    /// What must hold in every case.
    fn check(&self, case: &Case) -> Result<(), String> {
        let mut problems = Vec::new();
        for (name, generated) in &self.proxies {
            let mut findings = self.compiled.diagnostics.clone();
            findings.extend(generated.diagnostics.clone());
            let wrong = consistency::check(&generated.set, &findings);
            problems.extend(wrong.into_iter().map(|problem| format!("{name}: {problem}")));
        }
        if case.origin == Origin::Example {
            let proxies = self.proxies.iter().flat_map(|(_, generated)| &generated.diagnostics);
            let all = self.compiled.diagnostics.iter().chain(proxies);
            let errors = all.filter(|finding| finding.severity == Severity::Error);
            problems.extend(errors.map(|e| format!("an example must have no errors: {e}")));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}

/// The same documents again, and in other orders, must give the same bytes.
fn replay(case: &Case, input: &Input, outcome: &Outcome) -> Result<(), String> {
    same(case, input, outcome).map_err(|e| format!("compiled a second time: {e}"))?;
    // Which of two documents of one name is served depends on where they are, on purpose.
    let duplicates = outcome.compiled.diagnostics.iter().any(|d| d.code == Code::DuplicateDocument);
    for seed in 1..=3 {
        let mut random = Random(seed);
        let files = shuffle::files(input, &mut random);
        same(case, &files, outcome).map_err(|e| format!("files shuffled, seed {seed}: {e}"))?;
        if !duplicates {
            let documents = shuffle::documents(input, &mut random);
            same(case, &documents, outcome)
                .map_err(|e| format!("documents shuffled, seed {seed}: {e}"))?;
        }
    }
    Ok(())
}

fn same(case: &Case, input: &Input, outcome: &Outcome) -> Result<(), String> {
    let again = Outcome::of(case, input)?;
    for ((name, before), (_, now)) in outcome.proxies.iter().zip(&again.proxies) {
        if before.set != now.set {
            let text = |set| json::yaml(&json::set_json(set));
            let difference = diff::lines(&text(&before.set), &text(&now.set));
            return Err(format!("{name} gets other resources, {difference}"));
        }
    }
    Ok(())
}

fn compare(case: &Case, produced: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    let expected = present(&case.expected());
    let mut problems = Vec::new();
    for path in expected.iter().filter(|path| !produced.contains_key(*path)) {
        problems.push(format!("expected/{} is not produced", path.display()));
    }
    for (path, actual) in produced {
        let Ok(wanted) = fs::read_to_string(case.expected().join(path)) else {
            problems.push(format!("expected/{} is not there", path.display()));
            continue;
        };
        if wanted != *actual {
            let difference = diff::lines(&wanted, actual);
            problems.push(format!("expected/{} {difference}", path.display()));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.push("UPDATE_GOLDEN=1 cargo test --test golden rewrites; read the diff".to_owned());
    Err(problems.join("\n"))
}

fn update(case: &Case, produced: &BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    let dir = case.expected();
    for stale in present(&dir).iter().filter(|path| !produced.contains_key(*path)) {
        fs::remove_file(dir.join(stale))?;
    }
    for (path, text) in produced {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&dir))?;
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            fs::write(&path, text)?;
        }
    }
    for proxy in case::directories(&dir) {
        if fs::read_dir(&proxy)?.next().is_none() {
            fs::remove_dir(&proxy)?;
        }
    }
    Ok(())
}

/// The files below a directory, as paths below it.
fn present(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else if let Ok(below) = path.strip_prefix(dir) {
                found.insert(below.to_path_buf());
            }
        }
    }
    found
}

fn every_example_is_a_case() -> Result<(), Failed> {
    let shown: BTreeSet<PathBuf> = case::all()
        .into_iter()
        .filter_map(|(_, case)| case.ok())
        .filter(|case| case.origin == Origin::Example)
        .map(|case| case.config)
        .collect();
    let without: Vec<PathBuf> =
        case::directories(&case::examples()).into_iter().filter(|e| !shown.contains(e)).collect();
    if without.is_empty() {
        return Ok(());
    }
    Err(format!("no case in tests/golden/examples for {without:?}").into())
}

/// Codes that no golden case can show, and where they are tested instead.
const SHOWN_ELSEWHERE: &[(Code, &str)] = &[
    (Code::FileUnreadable, "tests/watch.rs: a case has only files that can be read"),
    (Code::LastGoodServed, "tests/live.rs: it needs a version before"),
    (Code::ExpiredCertificate, "src/kinds/secret/tests.rs: it needs a clock"),
    (Code::NodeInvalid, "src/proxy/node.rs: the proxies of a case are good"),
    (Code::InvalidResource, "src/generate/route/tests.rs: kinds refuse what leads to one"),
    (Code::RejectedByProxy, "tests/envoy.rs: nothing in a case is refused"),
];

/// The words of each finding are a promise, so each is in an expected file.
fn every_code_is_shown() -> Result<(), Failed> {
    let findings: Vec<String> = case::all()
        .into_iter()
        .filter_map(|(_, case)| case.ok())
        .flat_map(|case| {
            let files = present(&case.expected()).into_iter();
            let findings = files.filter(|file| file.ends_with("diagnostics.txt"));
            findings.map(|file| case::read(&case.expected().join(file))).collect::<Vec<_>>()
        })
        .collect::<Result<_, String>>()?;
    let mut problems = Vec::new();
    for code in Code::ALL {
        let shown = findings.iter().any(|text| text.contains(&format!("[{code}]")));
        let elsewhere = SHOWN_ELSEWHERE.iter().find(|(other, _)| other == code);
        match (shown, elsewhere) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => problems.push(format!("no case shows {code:?}")),
            (true, Some((_, place))) => problems.push(format!("a case shows {code:?}; {place}")),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// A directory that lost its case (a rename, a merge) would never be looked at again, and an area
/// that nobody has described would soon overlap with another.
fn no_stray_directories() -> Result<(), Failed> {
    let areas = case::directories(&case::golden());
    let stray: Vec<&PathBuf> = areas.iter().filter(|area| !is_described(area)).collect();
    if !stray.is_empty() {
        return Err(format!("areas without a line in tests/golden/README.md: {stray:?}").into());
    }
    let stray: Vec<PathBuf> = areas
        .iter()
        .flat_map(|area| case::directories(area))
        .filter(|dir| !dir.join("case.md").is_file())
        .collect();
    if stray.is_empty() { Ok(()) } else { Err(format!("without case.md: {stray:?}").into()) }
}

fn is_described(area: &Path) -> bool {
    let name = area.file_name().unwrap_or_default().to_string_lossy();
    let readme = case::read(&case::golden().join("README.md")).unwrap_or_default();
    readme.contains(&format!("| `{name}` | "))
}
