//! Injects delays and aborts: empty in the chain, the faults are on the routes.

use super::{FilterContext, HttpFilter};
use crate::generate::matching;
use crate::model::{Abort, AbortStatus, Delay, HttpRule, Percent};
use crate::xds::pb::{self, Any, fault, fault_common};

pub(super) struct Fault;

impl HttpFilter for Fault {
    fn name(&self) -> &'static str {
        "envoy.filters.http.fault"
    }

    fn in_chain(&self, _: &FilterContext) -> Option<Any> {
        Some(pb::any(&fault::HttpFault::default()))
    }

    fn on_route(&self, rule: &HttpRule) -> Option<Any> {
        let wanted = rule.fault.as_ref()?;
        Some(pb::any(&fault::HttpFault {
            delay: wanted.delay.as_ref().map(delay),
            abort: wanted.abort.as_ref().map(abort),
            ..Default::default()
        }))
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
    use crate::generate::test_support::{decode, http_rule};
    use crate::model;
    use std::time::Duration;

    fn faults(fault: model::Fault) -> fault::HttpFault {
        let rule = HttpRule { fault: Some(fault), ..http_rule() };
        decode(&Fault.on_route(&rule).unwrap())
    }

    #[test]
    fn an_unset_percentage_is_never() {
        let made = faults(model::Fault {
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
        let made = faults(model::Fault {
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
