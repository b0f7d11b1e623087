ktrdr agent trigger
# Wait for full cycle completion (~20-30 minutes total)

ktrdr agent status
# Expected: status = idle (cycle completed)

cat strategies/<strategy_name>/assessment.json
# Expected: JSON with verdict, strengths, weaknesses, suggestions

ktrdr operations status <agent_research_op_id>
# Expected: COMPLETED with full result summary
