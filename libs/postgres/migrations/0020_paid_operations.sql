-- What models were paid for is asked by time; operations that paid nothing are most and stay out.
create index operations_paid on operations (created_at desc) where tokens > 0;
