//! Requests through generated configuration: each request of each golden case is a test of its own.
//! `golden/README.md` says how they are written, `envoy.rs` asks a real Envoy the same.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use support::case::{self, Case};
use support::compiled::{self, Input};
use support::requests::{self, Request};
use support::simulate::Simulator;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = case::all().into_iter().flat_map(|(name, case)| match case.map(of_case) {
        Ok(Ok(trials)) => trials,
        Ok(Err(problem)) | Err(problem) => {
            vec![Trial::test(name, move || Err(Failed::from(problem)))]
        }
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn of_case(case: Case) -> Result<Vec<Trial>, String> {
    let requests = requests::of(&case)?;
    Ok(requests
        .into_iter()
        .map(|request| {
            let case = case.clone();
            let name = format!("{}: {}", case.name, request.name);
            Trial::test(name, move || check(&case, &request).map_err(Failed::from))
        })
        .collect())
}

fn check(case: &Case, request: &Request) -> Result<(), String> {
    let compiled = Input::read(case).compile();
    let proxy = case.proxies.iter().find(|proxy| proxy.name == request.proxy);
    let proxy = proxy.ok_or_else(|| format!("there is no proxy {}", request.proxy))?;
    let generated = compiled::generate(&compiled, proxy)?;
    let answer = Simulator::new(&generated.set).answer(request)?;
    request.expect.judge(&answer)
}
