-- Lists of entries in one string: each entry is `width` bytes of big-endian doubles. The Lua half of list.ts.
-- The first number of the entries never falls; the second is an id or a total.

builders.lists = function()
  local function number(list, at)
    return (struct.unpack('>d', list, at))
  end

  -- How many entries have a first number of at most `most`.
  local function up_to(list, width, most)
    local low, high = 0, #list / width
    while low < high do
      local middle = math.floor((low + high) / 2)
      if number(list, middle * width + 1) <= most then low = middle + 1 else high = middle end
    end
    return low
  end

  -- The place (from 0) of the first entry that has these bytes behind its first `from`; nil: none.
  local function search(list, width, bytes, from)
    -- large numbers all begin alike: by its end one is found ten times as fast
    local tail = string.sub(bytes, 3)
    local at = from + 3
    while true do
      at = string.find(list, tail, at, true)
      if not at then return nil end
      local place = (at - 3 - from) / width
      if place % 1 == 0 and string.sub(list, at - 2, at - 3 + #bytes) == bytes then return place end
      at = at + 1
    end
  end

  -- The place of the entry whose second number is the id; nil: none.
  local function find(list, width, id)
    return search(list, width, struct.pack('>d', id), 8)
  end

  -- The list with the entry behind those whose first number is not greater.
  local function insert(list, width, entry)
    local first = number(entry, 1)
    local count = #list / width
    -- nearly always the last
    if count == 0 or number(list, (count - 1) * width + 1) <= first then return list .. entry end
    local place = up_to(list, width, first)
    return string.sub(list, 1, place * width) .. entry .. string.sub(list, place * width + 1)
  end

  -- The list without `count` entries from place `from` (from 0).
  local function remove(list, width, from, count)
    return string.sub(list, 1, from * width) .. string.sub(list, (from + count) * width + 1)
  end

  return { number = number, up_to = up_to, search = search, find = find, insert = insert, remove = remove }
end
