"""A worker that sends what is due, in nothing but gRPC.

Each thread claims one due entry at a time with a long poll, calls the provider
for it, and releases the claim with what the provider said. PYTHONPATH has the
stubs that protoc makes from admit's protos; there is no client library.
"""

import argparse
import http.client
import signal
import sys
import threading
import time
import uuid

import grpc
from admit.v1.admission_service_pb2 import NextDueRequest, ReleaseRequest
from admit.v1.admission_service_pb2_grpc import AdmissionServiceStub
from admit.v1.permit_pb2 import OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_THROTTLED
from google.protobuf.duration_pb2 import Duration

MAX_WAIT = Duration(seconds=2)


class Worker(threading.Thread):
    """One thread: claim, send, release."""

    def __init__(self, args, stopping):
        super().__init__()
        self.admit = AdmissionServiceStub(grpc.insecure_channel(args.admit))
        self.provider = http.client.HTTPConnection(args.provider, timeout=5)
        self.pool, self.bucket = args.pool, args.bucket
        self.stopping = stopping
        self.failed = True  # until run has come to its end

    def run(self):
        while not self.stopping.is_set():
            for claim in self.claim():
                self.release(claim, self.send(claim))
        self.failed = False

    def claim(self):
        request = NextDueRequest(pool=self.pool, max_items=1, max_wait=MAX_WAIT, request_id=uuid.uuid4().hex)
        return call(self.admit.NextDue, request).claims

    def send(self, claim):
        """Call the provider once; its status says how the work ended."""
        self.provider.request("GET", f"/{claim.permit.tenant}/{claim.key}")
        response = self.provider.getresponse()
        response.read()
        if response.status == 200:
            return OUTCOME_DONE
        if response.status == 429 and self.bucket:
            return OUTCOME_THROTTLED
        return OUTCOME_FAILED

    def release(self, claim, outcome):
        bucket = self.bucket if outcome == OUTCOME_THROTTLED else ""
        call(self.admit.Release, ReleaseRequest(token=claim.permit.token, outcome=outcome, bucket=bucket))


def call(method, request):
    """Send a request until it is answered; sending it again is harmless."""
    while True:
        try:
            return method(request, timeout=10)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--admit", required=True, help="address of admitd, host:port")
    parser.add_argument("--provider", required=True, help="address of the provider, host:port")
    parser.add_argument("--pool", required=True, help="pool to claim from")
    parser.add_argument("--bucket", help="bucket that a 429 pauses; without one a 429 is a failure")
    parser.add_argument("--threads", type=int, default=1, help="sends at a time")
    args = parser.parse_args()

    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    workers = [Worker(args, stopping) for _ in range(args.threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return any(worker.failed for worker in workers)


if __name__ == "__main__":
    sys.exit(main())
