//! Injects delays and aborts: empty in the chain, the faults are on the routes.

use super::{Decided, Extra, HttpFilter, RouteSite, Site};
use crate::generate::envoy::matching;
use crate::generate::filters::Settings;
use crate::model::{self, Abort, AbortStatus, Delay, Percent};
use crate::xds::pb::{self, Any, fault, fault_common};

pub(super) struct Fault;

impl HttpFilter for Fault {
    fn name(&self) -> &'static str {
        "envoy.filters.http.fault"
    }

    fn in_chain(&self, _: &Site<'_>, _: &mut Extra) -> Option<Decided> {
        Some(Faults { delay: None, abort: None }.into())
    }

    fn on_route(&self, site: &RouteSite<'_>, _: &mut Extra) -> Option<Decided> {
        let model::Fault { delay, abort } = site.rule.fault.clone()?;
        Some(Faults { delay, abort }.into())
    }
}

/// What is injected; in the chain nothing, so that routes can.
#[derive(Debug, PartialEq)]
struct Faults {
    delay: Option<Delay>,
    abort: Option<Abort>,
}

impl Settings for Faults {
    fn spell(&self) -> Any {
        pb::any(&fault::HttpFault {
            delay: self.delay.as_ref().map(delay),
            abort: self.abort.as_ref().map(abort),
            ..Default::default()
        })
    }
}

fn delay(delay: &Delay) -> fault_common::FaultDelay {
    use fault_common::fault_delay::FaultDelaySecifier;
    fault_common::FaultDelay {
        // An unset percentage falls back to Istio's deprecated integer, whose default is 0.
        percentage: Some(matching::fraction(delay.percent.unwrap_or(Percent::Hundredths(0)))),
        fault_delay_secifier: Some(FaultDelaySecifier::FixedDelay(pb::duration(delay.duration))),
    }
}

fn abort(abort: &Abort) -> fault::FaultAbort {
    use fault::fault_abort::ErrorType;
    fault::FaultAbort {
        percentage: abort.percent.map(matching::fraction),
        error_type: Some(match abort.status {
            AbortStatus::Http(status) => ErrorType::HttpStatus(status.into()),
            AbortStatus::Grpc(status) => ErrorType::GrpcStatus(status),
        }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::decode;
    use std::time::Duration;

    fn spelled(faults: Faults) -> fault::HttpFault {
        decode(&faults.spell())
    }

    #[test]
    fn an_unset_percentage_is_never() {
        let made = spelled(Faults {
            delay: Some(Delay { duration: Duration::from_secs(5), percent: None }),
            abort: Some(Abort { status: AbortStatus::Grpc(14), percent: None }),
        });
        assert_eq!(
            made.delay.unwrap().percentage,
            Some(matching::fraction(Percent::Hundredths(0)))
        );
        let abort = made.abort.unwrap();
        assert_eq!(abort.percentage, None);
        assert_eq!(abort.error_type, Some(fault::fault_abort::ErrorType::GrpcStatus(14)));
    }

    #[test]
    fn a_percentage_keeps_its_precision() {
        let made = spelled(Faults {
            delay: None,
            abort: Some(Abort {
                status: AbortStatus::Http(503),
                percent: Some(Percent::Millionths(1)),
            }),
        });
        let percentage = made.abort.unwrap().percentage.unwrap();
        assert_eq!(percentage.numerator, 1);
        assert_eq!(percentage.denominator().as_str_name(), "MILLION");
        assert_eq!(made.delay, None);
    }
}
