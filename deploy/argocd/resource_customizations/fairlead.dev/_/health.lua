-- The health of every kind of Fairlead, by the rules of kstatus, which Flux goes by too. `obj` is the object; returned is a
-- table with `status` and `message`.
local health = { status = "Progressing", message = "No controller has looked at it yet" }
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local function say(name, new_status)
  local condition = conditions[name]
  health.status = new_status
  health.message = condition.reason
  if condition.message ~= nil and condition.message ~= "" then
    health.message = condition.reason .. ": " .. condition.message
  end
  return health
end

if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  health.message = "The newest spec has not been looked at yet"
  return health
end
-- A deletion that waits for a person says so; any other is on its way.
if is_true("Stalled") then
  return say("Stalled", "Degraded")
end
if conditions.Synced ~= nil and conditions.Synced.status == "False" and conditions.Synced.reason == "Paused" then
  return say("Synced", "Suspended")
end
if is_true("Reconciling") then
  return say("Reconciling", "Progressing")
end
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "It is being deleted"
  return health
end
if conditions.Ready == nil then
  return health
end
if not is_true("Ready") then
  return say("Ready", "Progressing")
end
-- It can be used; what waits for a person or for a window says so.
if conditions.Synced ~= nil and conditions.Synced.status == "False" then
  return say("Synced", "Healthy")
end
return say("Ready", "Healthy")
